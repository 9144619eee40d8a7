"""The recipe of a generator is checked before any model is loaded."""


def test_a_rank_is_a_number(tmp_path, call) -> None:
    asked = ("tune", "generator", "p", "--model", "m", "--to", tmp_path)
    code, _, err = call(*asked, "--recipe", "rank=big")
    assert code == 2
    assert "rank" in err
