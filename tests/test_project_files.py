"""What a visitor of the project reads first is true, short and says the same everywhere."""

import re
import tomllib
from pathlib import Path

import yaml

import judgebench as jb

REPO = Path(__file__).resolve().parents[1]


def text(name: str) -> str:
    return (REPO / name).read_text("utf-8")


PROJECT = tomllib.loads(text("pyproject.toml"))["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def test_one_version_is_said_everywhere() -> None:
    cited = yaml.safe_load(text("CITATION.cff"))["version"]
    (latest, *_) = re.findall(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)
    assert {PROJECT["version"], str(cited), latest} == {jb.__version__}


def test_the_pythons_of_the_package_are_those_that_are_tested_and_shown() -> None:
    jobs = yaml.safe_load(text(".github/workflows/test.yml"))["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == PYTHONS
    assert "make test" in str(jobs["test"])
    assert "make docs" in str(jobs["docs"])
    assert f"python-{'_|_'.join(PYTHONS)}-blue" in text("README.md")


def test_a_tag_releases_what_was_built_and_tried() -> None:
    release = yaml.safe_load(text(".github/workflows/release.yml"))
    build, publish = release["jobs"]["build"], release["jobs"]["publish"]
    assert release[True] == {"push": {"tags": ["v*"]}}  # YAML reads the key `on` as true
    assert (release["permissions"], publish["permissions"]) == (
        {"contents": "read"},
        {"id-token": "write"},
    )
    assert "permissions" not in build
    assert build["needs"] == "slow"
    assert (publish["needs"], publish["environment"]) == ("build", "pypi")
    assert [step["uses"].split("@")[0] for step in publish["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]
    tried = "\n".join(step.get("run", "") for step in build["steps"])
    for line in ("twine check", '"$GITHUB_REF_NAME"', "judgebench demo --recorded"):
        assert line in tried


def test_what_the_gate_leaves_out_runs_weekly_and_before_a_release() -> None:
    slow = yaml.safe_load(text(".github/workflows/slow.yml"))
    assert {"schedule", "workflow_call"} <= slow[True].keys()
    targets = slow["jobs"]["slow"]["strategy"]["matrix"]["target"]
    of_make = re.search(r"^test-slow: (.*?) ##", text("Makefile"), re.MULTILINE)
    assert of_make is not None
    assert [*of_make[1].split(), "fuzz"] == targets


def test_issue_templates_are_forms() -> None:
    found = (REPO / ".github" / "ISSUE_TEMPLATE").glob("*.yml")
    forms = sorted(form for form in found if form.stem != "config")
    assert [form.stem for form in forms] == ["bug", "question", "wrong-number"]
    for form in forms:
        read = yaml.safe_load(form.read_text("utf-8"))
        assert all(part["attributes"]["label"] for part in read["body"]), form


def test_what_is_read_first_is_short() -> None:
    assert len(text("README.md").splitlines()) <= 120
    assert len(text("CHANGELOG.md").splitlines()) <= 60
    assert PROJECT["name"] in text("README.md").split("##")[0]


def test_every_public_name_is_on_an_api_page() -> None:
    pages = "".join(path.read_text("utf-8") for path in (REPO / "docs").glob("api*.md"))
    assert set(re.findall(r"::: judgebench\.(\w+)", pages)) == {*jb.__all__} - {"__version__"}


def test_every_extra_is_on_the_page_about_installing() -> None:
    page = text("docs/install.md")
    missing = [name for name in PROJECT["optional-dependencies"] if f"[{name}]" not in page]
    assert not missing


def test_long_tests_are_there() -> None:
    for name in (REPO / "tests" / "long.txt").read_text("utf-8").split():
        file, _, test = name.partition("::")
        if not (REPO / file).parent.is_dir():
            continue  # of a feature that is taken out
        assert f"\ndef {test}(" in (REPO / file).read_text("utf-8"), name
