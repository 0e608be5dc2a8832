"""Runs the steps of a composite action on a recorded event, as a runner does.

    run_action.py ACTION_FOLDER EVENT_NAME EVENT_FILE WORKSPACE TEMP [--input NAME=VALUE]... [--env NAME=VALUE]...
                  [--cache FOLDER]

Expressions are taken as far as the action uses them: `inputs.x`, `steps.x.outputs.y`, `github.x`, `github.event.x.y`,
a choice with `||`, comparisons with a text and their `&&`. Of other people's actions there are the halves of
actions/cache, which keep what they are given in FOLDER, a folder a key, or hold nothing without one. Prints what the
steps print, then a line `outputs: {JSON}`, and ends with the exit code of the first step that failed.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from ruamel.yaml import YAML

parser = argparse.ArgumentParser()
parser.add_argument("action", type=pathlib.Path)
parser.add_argument("event_name")
parser.add_argument("event", type=pathlib.Path)
parser.add_argument("workspace", type=pathlib.Path)
parser.add_argument("temp", type=pathlib.Path)
parser.add_argument("--input", action="append", default=[])
parser.add_argument("--env", action="append", default=[])
parser.add_argument("--cache", type=pathlib.Path)
options = parser.parse_args()

action = YAML(typ="safe").load((options.action / "action.yml").read_text())
given = dict(pair.split("=", 1) for pair in options.input)
unknown = given.keys() - action["inputs"].keys()
assert not unknown, f"the action has no input {unknown}"
github = {"token": "", "action_ref": "", "action_repository": "", **{
    name.removeprefix("github."): value
    for name, value in (pair.split("=", 1) for pair in options.env) if name.startswith("github.")
}}
try:
    event = json.loads(options.event.read_text())
except ValueError:
    event = {}
steps = {}


def value(expression):
    for choice in expression.split("||"):
        found = one(choice)
        if found:
            break
    return found


def one(expression):
    kind, *path = expression.strip().split(".")
    if kind == "inputs":
        return inputs[path[0]]
    if kind == "github" and path[0] == "event":
        found = event
        for name in path[1:]:
            found = found.get(name, "") if isinstance(found, dict) else ""
        return found
    if kind == "github":
        return github[path[0]]
    if kind == "steps":
        return steps.get(path[0], {}).get(path[2], "")
    raise SystemExit(f"an expression that this runner does not know: {expression}")


def filled(text):
    return re.sub(r"\$\{\{(.*?)\}\}", lambda m: value(m.group(1)), str(text))


def applies(condition):
    for part in condition.split(" && "):
        match = re.fullmatch(r"(\S+) (==|!=) '(\w*)'", part)
        assert match, f"a condition that this runner does not know: {condition}"
        if (value(match.group(1)) == match.group(3)) != (match.group(2) == "=="):
            return False
    return True


def cache(step):
    """actions/cache/restore and actions/cache/save."""
    half = re.fullmatch(r"actions/cache/(restore|save)@[0-9a-f]{40}", step["uses"])
    assert half, f"an action that this runner does not know: {step['uses']}"
    path, key = (filled(step["with"][name]) for name in ("path", "key"))
    assert path and re.fullmatch(r"[A-Za-z0-9._-]+", key), (path, key)
    if not options.cache:
        return {}
    kept = options.cache / key
    if half.group(1) == "save":
        assert not kept.exists(), f"{key} is kept already"
        shutil.copytree(path, kept)
    elif kept.exists():
        shutil.copytree(kept, path, dirs_exist_ok=True)
        return {"cache-hit": "true"}
    return {}


inputs = {}
for name, about in action["inputs"].items():
    inputs[name] = given.get(name, filled(about.get("default", "")))

code = 0
for number, step in enumerate(action["runs"]["steps"]):
    if "if" in step and not applies(step["if"]):
        continue
    if "uses" in step:
        steps[step.get("id")] = cache(step)
        continue
    files = {name: options.temp / f"{name.lower()}-{number}" for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "LC_ALL": "C.UTF-8",
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": options.event_name,
        "GITHUB_EVENT_PATH": str(options.event),
        "GITHUB_WORKSPACE": str(options.workspace),
        "GITHUB_ACTION_PATH": str(options.action),
        "GITHUB_REF": "refs/pull/7/merge" if options.event_name == "pull_request" else "refs/heads/main",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "octo-org/octo-repo",
        "RUNNER_TEMP": str(options.temp),
        **{name: str(path) for name, path in files.items()},
        **dict(pair.split("=", 1) for pair in options.env if not pair.startswith("github.")),
        **{name: filled(text) for name, text in step.get("env", {}).items()},
    }
    script = options.temp / f"step-{number}.sh"
    script.write_text(step["run"])
    folder = options.workspace / filled(step.get("working-directory", "."))
    shell = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
    assert step["shell"] == "bash"
    sys.stdout.flush()
    code = subprocess.run(shell, cwd=folder, env=environment, stdin=subprocess.DEVNULL).returncode
    outputs = {}
    for line in files["GITHUB_OUTPUT"].read_text().splitlines():
        name, _, text = line.partition("=")
        assert re.fullmatch(r"[a-z_]+", name), f"an output of a strange name: {line!r}"
        outputs[name] = text
    if "id" in step:
        steps[step["id"]] = outputs
    summary = files["GITHUB_STEP_SUMMARY"].read_text()
    if summary:
        (options.temp / "summary.md").write_text(summary)
    if code:
        break

print("outputs:", json.dumps({name: filled(about["value"]) for name, about in action["outputs"].items()}))
sys.exit(code)
