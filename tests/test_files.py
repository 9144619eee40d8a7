"""Files are whole at any moment; a torn last line goes, and nothing else does."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_texts import NASTY

from judgebench.errors import SetupError
from judgebench.files import drop_torn_line, read_object, to_line, write_atomically


@pytest.mark.parametrize("text", NASTY)
def test_a_line_is_one_line_of_utf8(text: str) -> None:
    line = to_line({"text": text}).encode("utf-8")
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line) == {"text": text}


def test_text_that_utf8_can_hold_stays_readable() -> None:
    assert to_line({"text": "naïve 😀"}) == '{"text":"naïve 😀"}\n'


@pytest.mark.parametrize("before", [0, 1, 65_535, 65_536, 65_537])
@pytest.mark.parametrize("torn", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_long_lines_are_dropped_whole(tmp_path: Path, before: int, torn: int) -> None:
    path = tmp_path / "v.jsonl"
    kept = b"x" * (before - 1) + b"\n" if before else b""
    path.write_bytes(kept + b"y" * torn)
    assert drop_torn_line(path) == torn
    assert path.read_bytes() == kept


def test_there_is_nothing_to_drop_where_there_is_no_file(tmp_path: Path) -> None:
    assert drop_torn_line(tmp_path / "none") == 0


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):  # a folder cannot be replaced by a file
        write_atomically(folder, b"new")
    assert {p.name for p in tmp_path.iterdir()} == {"run.json", "folder"}  # nothing is left over


texts = st.text(st.characters(codec=None)) | st.sampled_from(NASTY)
numbers = st.integers() | st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
)


@given(st.dictionaries(texts, values), st.booleans())
def test_an_object_is_read_as_the_standard_library_reads_it(value, ascii_only: bool) -> None:
    line = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        expected = json.loads(line)
    except ValueError:
        with pytest.raises(SetupError, match="is not JSON"):
            read_object(line, Path("x"))
    else:
        assert repr(read_object(line, Path("x"))) == repr(expected)


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{", b'{"a":1}x', b'{"a":01}',
        b'{"a":1,}', b"{'a':1}", b'{"a":"\n"}', b'{"a":"\x1f"}',
        b'{"a":"\xff"}', b'{"a":"\xc3("}', b'{"a":.5}', b'{"a":+1}', b'{"a":0x1}', b'{"a":tru}',
        b'{"a":"\\x"}', b'{"a":"\\u12"}', b"{a:1}", b'{"a" 1}', b'{"a":1 "b":2}', b"[" * 100_000,
        b'{"a":1}{"b":2}', b'{"a":/* */1}',
    ],
)  # fmt: skip
def test_what_is_no_json_is_told(line: bytes) -> None:
    with pytest.raises(SetupError, match="is not JSON"):
        read_object(line, Path("x"), 3)


@pytest.mark.parametrize(
    "line", [b'{"a":1e999}', b'{"a":1,"a":2}', b'{"a":NaN}', b'\xef\xbb\xbf{"a":1}',
             b'{"a":123456789012345678901234567890}', b' {"a":1}\r\n',
             b'{"a":' + b"[" * 500 + b"]" * 500 + b"}"],
)  # fmt: skip
def test_odd_json_is_read_as_the_standard_library_reads_it(line: bytes) -> None:
    assert repr(read_object(line, Path("x"))) == repr(json.loads(line))
