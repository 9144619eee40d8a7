"""What the documentation offers to programs that read it."""

import re
import runpy
from pathlib import Path

import yaml

REPO = Path(__file__).resolve().parents[1]
HOOK = runpy.run_path(str(REPO / "docs" / "for_agents.py"))


class _Loader(yaml.SafeLoader):
    pass


_Loader.add_constructor("!ENV", lambda loader, node: "")


def site(folder: Path) -> Path:
    """What the hook writes beside the pages of a site."""
    settings = yaml.load((REPO / "mkdocs.yml").read_text("utf-8"), _Loader)
    HOOK["on_post_build"]({**settings, "docs_dir": REPO / "docs", "site_dir": folder})
    return folder


def test_llms_txt_lists_every_page_with_a_sentence(tmp_path: Path) -> None:
    lines = (site(tmp_path) / "llms.txt").read_text("utf-8").splitlines()
    entries = [re.fullmatch(r"- \[(.+?)\]\((\w+\.md)\): (.*)", x) for x in lines if x[:1] == "-"]
    listed = {entry[2]: entry[3] for entry in entries if entry}
    assert lines[0] == "# judgebench"
    assert listed.keys() == {path.name for path in (REPO / "docs").glob("*.md")}
    assert not [name for name, sentence in listed.items() if len(sentence) < 20]


def test_twins_lie_beside_the_pages_and_document_objects(tmp_path: Path) -> None:
    twins = site(tmp_path)
    assert (twins / "decide.md").read_text("utf-8") == (REPO / "docs/decide.md").read_text("utf-8")
    page = (twins / "api.md").read_text("utf-8")
    assert ":::" not in page
    assert "### judgebench.decide" in page
    assert "Decide whether each judge can replace the annotators" in page
