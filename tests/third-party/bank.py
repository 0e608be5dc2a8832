"""What the tests of the workflow have in common: a repository, pull request 7 with two bugs, its ticket, and a model.

The repository is a clone whose remote is a Bitbucket on loopback; pull request 7 there merges `feature` into `main`. Its
title names PROJ-12, which the real mcp-atlassian reads from a Jira on loopback. The model finds the endless loop, confirms
it, plans its fix and makes it; and it cites the ticket.
"""
import json
import os
import random
import re
import subprocess
import sys
import urllib.request

from model import Model, claim

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY, TOOLS, WORK = os.environ["CLAUDE_REVIEWER"], os.environ["THIRD_PARTY"], os.environ["WORK"]
HOME = os.environ["HOME"]
FILE = "src/bank.py"
LOOP = "    while retries > 0:"
FIXED_LOOP = LOOP + "\n        retries -= 1"
CODE = f'''import time

import yaml


def load_settings(path):
    return yaml.unsafe_load(open(path))


def call(send, request, retries=7):
{LOOP}
        try:
            return send(request)
        except OSError:
            time.sleep(1)
    raise TimeoutError(request)
'''


def review(prompt):
    """Returns the answer to a review: the loop is a bug as long as nothing counts, and the ticket limits the retries."""
    findings = []
    if re.search(r"^ *\d+\+? *\+?.*while retries > 0:", prompt, re.M) and "retries -= 1" not in prompt:
        findings = [claim(FILE, CODE, LOOP, "Retry counter never decreases", message="The counter never changes.",
                          failure="A bank that does not answer keeps the loop running.",
                          suggestion="Decrease it in each pass.")]
    missing = [{"requirement": "Calls are retried seven times by default.", "severity": "major",
                "reference": 'PROJ-12: "retried at most three times"'}]
    is_given = "Calls to the bank are retried at most three times" in prompt
    return {"findings": findings, "missing_requirements": missing if is_given else []}


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Bank:
    """The repository of the bank with its servers. Use it as a context manager: the end of the block ends them."""

    def __init__(self):
        self.repo, self.bare = os.path.join(HOME, "bank"), os.path.join(WORK, "bank.git")
        self.servers = []
        token = "".join(random.Random(3).choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(24))
        self.commits()
        write(os.path.join(WORK, "jira.log.cites"), "")
        jira = self.serve("context_server.py", os.path.join(WORK, "jira.log"), token)
        title = "PROJ-12: retry calls to the bank"
        forge = self.serve("bitbucket_server.py", self.bare, title, os.path.join(WORK, "forge.log"))
        self.forge = f"http://127.0.0.1:{forge}"
        plan = {"summary": "Count the tries.", "steps": [{"text": "Decrease the counter in each pass.", "files": [FILE]}]}
        edit = ("edit", {"path": FILE, "old": LOOP, "new": FIXED_LOOP})
        self.model = Model(review, plan, [[edit]], report="The counter decreases in each pass.")
        self.git("remote", "add", "origin", f"{self.forge}/scm/demo/app.git")
        self.configure(self.model.port)
        # What a shell of the person has. The times of commits are fixed.
        self.environment = {
            "HOME": HOME, "PATH": os.path.dirname(BINARY) + os.pathsep + os.environ["PATH"],
            "BB_TOKEN": token, "JIRA_URL": f"http://127.0.0.1:{jira}/jira", "JIRA_PERSONAL_TOKEN": token}
        # What differs between two runs, for `Terminal`.
        self.places = {self.forge: "http://FORGE", f"127.0.0.1:{forge}": "FORGE", HOME: "HOME", WORK: "WORK"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.kill()

    def commits(self):
        """Makes the repository with its branch `main`, and the one of the forge with both branches."""
        for key, value in {"user.name": "Dana", "user.email": "dana@example.com", "init.defaultBranch": "main",
                           "advice.detachedHead": "false"}.items():
            subprocess.run(["git", "config", "--global", key, value], check=True)
        write(os.path.join(self.repo, "README.md"), "# Bank\n")
        write(os.path.join(self.repo, ".gitignore"), ".reviews/\n")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "PROJ-1: first")
        self.git("checkout", "-q", "-b", "feature")
        write(os.path.join(self.repo, FILE), CODE)
        self.git("add", ".")
        self.git("commit", "-qm", "PROJ-12: retry calls to the bank")
        self.git("clone", "-q", "--bare", self.repo, self.bare, cwd=WORK)
        self.git("update-server-info", cwd=self.bare)
        self.git("checkout", "-q", "main")
        self.git("branch", "-qD", "feature")

    def serve(self, program, *arguments):
        """Starts a server that prints its port, and returns that."""
        command = [sys.executable, os.path.join(HERE, program), *arguments]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.servers.append(server)
        return int(server.stdout.readline())

    def configure(self, model):
        """Writes the configuration of the person."""
        write(os.path.join(HOME, ".config/claude-reviewer/config.toml"), f'''version = 1
[review]
backends = ["local"]
[backend.local]
kind = "openai"
base_url = "http://127.0.0.1:{model}/v1"
model = "stub"
context_tokens = 60000
[forge]
bitbucket_api = "{self.forge}/rest/api/1.0"
[context]
projects = ["PROJ"]
[context.servers.atlassian]
command = ["{TOOLS}/atlassian/bin/mcp-atlassian"]
env = ["JIRA_URL", "JIRA_PERSONAL_TOKEN"]
''')

    def git(self, *args, cwd=None):
        """Runs git, in the repository if no other folder is given. Times are fixed, so that IDs of commits are, too."""
        time = "2026-01-05T10:00:00Z"
        env = {**os.environ, "GIT_AUTHOR_DATE": time, "GIT_COMMITTER_DATE": time}
        run = subprocess.run(["git", *args], cwd=cwd or self.repo, check=True, stdout=subprocess.PIPE, text=True, env=env)
        return run.stdout.strip()

    def fetch(self):
        """Makes the branch of the pull request a branch here."""
        self.git("fetch", "-q", self.bare, "feature:feature")

    def checkout(self):
        """Fetches the branch of the pull request and checks it out."""
        self.fetch()
        self.git("checkout", "-q", "feature")

    def push(self):
        """Brings the branch of the pull request to the forge."""
        self.git("push", "-q", self.bare, "feature")
        self.git("update-server-info", cwd=self.bare)

    def reviewer(self, *args, codes=(0,)):
        """Runs the program as the person does, outside of the terminal, and returns its standard output."""
        env = {"LC_ALL": "C.UTF-8", **self.environment}
        run = subprocess.run([BINARY, *args], cwd=self.repo, env=env, capture_output=True, text=True, check=False)
        assert run.returncode in codes, f"{args}: exit code {run.returncode}\n{run.stdout}\n{run.stderr}"
        return run.stdout

    def text(self, path=FILE):
        """Returns the text of a file of the worktree."""
        with open(os.path.join(self.repo, path), encoding="utf-8") as file:
            return file.read()

    def state(self):
        """Returns the comments and builds of the forge."""
        with urllib.request.urlopen(f"{self.forge}/state", timeout=10) as answer:
            return json.load(answer)

    def inline(self):
        """Returns the comments on lines."""
        return [c for c in self.state()["comments"] if c["anchor"]]
