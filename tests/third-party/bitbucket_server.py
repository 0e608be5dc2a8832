#!/usr/bin/env python3
"""A Bitbucket Data Center server on loopback with one repository and one pull request, as far as claude-reviewer uses it.

    bitbucket_server.py REPOSITORY.git TITLE LOG

It serves the bare repository over git's dumb HTTP protocol, whose branch `feature` is the head of pull request 7 and
whose branch `main` is its base. It keeps comments and build states in memory. LOG gets a line of JSON for every request
that changes something. `GET /state` returns comments and builds for the test. The first line of standard output is the
port.

Source of the interface: https://developer.atlassian.com/server/bitbucket/rest/
"""
import http.server
import json
import os
import subprocess
import sys
import threading
import urllib.parse

REPOSITORY, TITLE, LOG = sys.argv[1:4]
LOCK = threading.Lock()
COMMENTS, BUILDS = [], []
# The server ignores the case of project keys.
API = "/rest/api/1.0/projects/demo/repos/app"


def git(*args):
    command = ["git", "--git-dir", REPOSITORY, *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def page(values):
    return {"values": values, "size": len(values), "isLastPage": True, "start": 0}


def branch_end(name):
    return {
        "id": f"refs/heads/{name}", "displayId": name, "latestCommit": git("rev-parse", f"refs/heads/{name}"),
        "repository": {"id": 1, "slug": "app", "project": {"key": "DEMO", "type": "NORMAL"}},
    }


def pull_request():
    return {
        "id": 7, "version": 1, "title": TITLE, "description": "Reads the settings from a file.", "state": "OPEN",
        "open": True, "draft": False, "author": {"user": {"name": "dana", "id": 3}}, "updatedDate": 1700000000000,
        "fromRef": branch_end("feature"), "toRef": branch_end("main"),
        "links": {"self": [{"href": f"http://127.0.0.1:{PORT}/projects/DEMO/repos/app/pull-requests/7"}]},
    }


def commits():
    ids = git("rev-list", "main..feature").split()
    return [{"id": i, "message": git("log", "-1", "--format=%B", i)} for i in ids]


def comment_json(comment):
    return {
        "id": comment["id"], "version": comment["version"], "text": comment["text"], "state": "OPEN",
        "severity": "NORMAL", "author": {"name": "reviewer", "id": 9}, "comments": [],
        "threadResolved": comment["resolved"],
    }


def activities():
    out = []
    for comment in reversed(COMMENTS):
        activity = {"action": "COMMENTED", "commentAction": "ADDED", "comment": comment_json(comment)}
        if comment["anchor"]:
            activity["commentAnchor"] = comment["anchor"]
        out.append(activity)
    return out


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, value, kind="application/json"):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-ausername", "reviewer")
        self.send_header("x-auserid", "9")
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, message):
        self.reply(status, {"errors": [{"context": None, "message": message}]})

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))

    def git_file(self, name):
        place = os.path.realpath(os.path.join(REPOSITORY, name))
        if not place.startswith(os.path.realpath(REPOSITORY) + os.sep) or not os.path.isfile(place):
            return self.reply(404, b"not found", "text/plain")
        with open(place, "rb") as f:
            self.reply(200, f.read(), "application/octet-stream")

    def handle_request(self):
        path = urllib.parse.urlparse(self.path).path
        if path == "/state":
            return self.reply(200, {"comments": COMMENTS, "builds": BUILDS})
        if path.startswith("/scm/demo/app.git/"):
            return self.git_file(path.removeprefix("/scm/demo/app.git/"))
        if not self.headers.get("authorization", "").startswith("Bearer "):
            return self.refuse(401, "Authentication failed")
        if path == "/rest/api/1.0/application-properties":
            return self.reply(200, {"version": "9.4.0"})
        if not path.lower().startswith(API + "/"):
            return self.refuse(404, "not found")
        with LOCK:
            self.project(path[len(API) + 1:].split("/"))

    def project(self, parts):
        method = self.command
        if method != "GET":
            with open(LOG, "a", encoding="utf-8") as f:
                f.write(json.dumps({"method": method, "path": "/".join(parts)}) + "\n")
        if (method, parts) == ("GET", ["pull-requests"]):
            return self.reply(200, page([pull_request()]))
        if parts[:1] == ["commits"] and parts[2:] == ["builds"]:
            return self.build(parts[1])
        if parts[:2] != ["pull-requests", "7"]:
            return self.refuse(404, "not found")
        rest = parts[2:]
        if method == "GET" and not rest:
            return self.reply(200, pull_request())
        if method == "GET" and rest == ["commits"]:
            return self.reply(200, page(commits()))
        if method == "GET" and rest == ["activities"]:
            return self.reply(200, page(activities()))
        if method == "POST" and rest == ["comments"]:
            given = self.body()
            comment = {"id": 100 + len(COMMENTS), "version": 0, "text": given["text"],
                       "anchor": given.get("anchor"), "resolved": False}
            COMMENTS.append(comment)
            return self.reply(201, comment_json(comment))
        comment = next((c for c in COMMENTS if rest == ["comments", str(c["id"])]), None)
        if comment and method == "GET":
            return self.reply(200, comment_json(comment))
        if comment and method == "PUT":
            given = self.body()
            if given["version"] != comment["version"]:
                return self.refuse(409, "You are attempting to modify a comment based on out-of-date information")
            comment["text"] = given.get("text", comment["text"])
            comment["resolved"] = given.get("threadResolved", comment["resolved"])
            comment["version"] += 1
            return self.reply(200, comment_json(comment))
        return self.refuse(404, "not found")

    def build(self, commit):
        if self.command == "POST":
            BUILDS.append(dict(self.body(), commit=commit))
            return self.reply(204, b"")
        found = [b for b in BUILDS if b["commit"] == commit]
        return self.reply(200, found[-1]) if found else self.refuse(404, "no build")

    do_GET = do_POST = do_PUT = handle_request

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
PORT = server.server_address[1]
print(PORT, flush=True)
server.serve_forever()
