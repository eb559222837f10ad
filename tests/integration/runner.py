"""Runs the action in a dataset repository with act, on the machine itself."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scratch import clean_env, commit_all, git, run, tool

CHECKOUT = "actions/checkout@93cb6efe18208431cddfb8368fd83d5badbf9bfd"
UPLOAD = "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f"

WORKFLOW = """\
on: push
permissions:
  contents: read
jobs:
  gate:
    runs-on: self-hosted
    steps:
      - uses: {checkout}
      - id: gate
        uses: {action}
        with:
{inputs}
      - if: ${{{{ !cancelled() }}}}
        shell: bash
        env:
          OUTPUTS: ${{{{ toJSON(steps.gate.outputs) }}}}
        run: printf '%s' "$OUTPUTS" >"$EVIDENCE/outputs.json"
"""

# The upload step of the tests: it keeps what it was given.
STAND_IN = """\
name: upload
inputs:
  name: {}
  path: {}
  if-no-files-found: {}
  retention-days: {}
outputs:
  artifact-url:
    value: https://example.org/artifact
runs:
  using: composite
  steps:
    - shell: bash
      env:
        NAME: ${{ inputs.name }}
        FOLDER: ${{ inputs.path }}
      run: |
        mkdir -p "$EVIDENCE/uploaded/$NAME"
        cp -R "$FOLDER/." "$EVIDENCE/uploaded/$NAME"
"""


@dataclass(frozen=True)
class Outcome:
    """What a run of the workflow left: its code, log, outputs and the uploaded folders."""

    code: int
    log: str
    outputs: dict[str, str]
    uploaded: Path

    def summary(self) -> str:
        """The job summary, as act shows it in its log."""
        found = re.search(r"Summary - (.*?)\n\[gate", self.log, re.DOTALL)
        return found.group(1) if found else ""

    def report(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.uploaded / "evalspill-report/report.json").read_bytes())
        return loaded

    def shown(self) -> str:
        """The log without what act itself puts in front of a line."""
        return "\n".join(line.partition("| ")[2] for line in self.log.splitlines() if "| " in line)


class Act:
    """act with the tool's own repository in the place of a released one."""

    def __init__(self, own: Path, home: Path, wheels: Path) -> None:
        self.command, self.own, self.home, self.wheels = tool("act"), own, home, wheels
        self.stand_in = home / "upload"
        self.stand_in.mkdir(parents=True)
        (self.stand_in / "action.yml").write_text(STAND_IN)
        git(self.stand_in, "init", "-q")

    def run(self, folder: Path, action: str = "", **inputs: str) -> Outcome:
        """Commit the folder and run the action in it; inputs are named with _ for -."""
        inputs.setdefault("wheels", str(self.wheels))
        lines = "".join(f"{name.replace('_', '-')}: {json.dumps(value)}\n" for name, value in inputs.items())
        workflow = folder / ".github/workflows/gate.yml"
        workflow.parent.mkdir(parents=True, exist_ok=True)
        uses = f"evalspill/evalspill-guard{action}@v0"
        text = WORKFLOW.format(checkout=CHECKOUT, action=uses, inputs=textwrap.indent(lines, " " * 10))
        workflow.write_text(text)
        if not (folder / ".git").exists():
            git(folder, "init", "-q", "-b", "main")
        commit_all(folder, "workflow")
        return self.start(folder)

    def start(self, folder: Path, *arguments: str) -> Outcome:
        """Run the workflows of the folder as it is committed."""
        evidence = folder.parent / f"evidence{len(list(folder.parent.iterdir()))}"
        evidence.mkdir()
        done = run(
            [self.command, "push", *arguments, "-P", "self-hosted=-self-hosted", "-P", "ubuntu-latest=-self-hosted", "--no-cache-server",
             "--local-repository", f"evalspill/evalspill-guard@v0={self.own}",
             "--local-repository", f"{UPLOAD}={self.stand_in}", "--env", f"EVIDENCE={evidence}"],
            folder, clean_env(XDG_CACHE_HOME=str(self.home / "cache"), HOME=str(self.home), NO_COLOR="1"),
        )  # fmt: skip
        outputs = evidence / "outputs.json"
        loaded = json.loads(outputs.read_text()) if outputs.exists() else {}
        return Outcome(done.returncode, done.stdout, loaded, evidence / "uploaded")
