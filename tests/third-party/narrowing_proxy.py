"""A proxy in front of a model server that narrows the form of an answer, or only its length.

    narrowing_proxy.py PORT TOKENS   forwards to PORT, with answers of at most TOKENS; prints its own port

A model of 135 million parameters cannot repeat 32 digits, and does not know when to stop. So the grammar says it:
the nonce and the files are constants, lists and texts are short. A question with tools is answered without a call,
in the form that the instructions describe. Everything else is the model's, and the server's.
"""

import http.client
import http.server
import json
import re
import sys
import threading


def narrowed(request, brief):
    """Returns the request with a form that a very small model can fill in; `brief`: without findings."""
    form = request.get("response_format", {}).get("json_schema", {}).get("schema")
    if not form and request.get("tools"):
        form = described(request)
    if not form:
        return request
    asked = "\n".join(m["content"] for m in request["messages"] if m["role"] == "user")
    nonce = re.findall(r"nonce: ([0-9a-f]{32})", asked)[-1]
    form = json.loads(json.dumps(form))
    fields = form["properties"]
    shorten(fields)
    fields["nonce"] = {"const": nonce}
    if "files_reviewed" in fields:
        fields["files_reviewed"] = {"const": sorted(set(re.findall(r"[a-z]+/[a-z0-9]+\.py", asked)))}
        fields["design_compliance"] = {"type": "null"}
        fields["missing_requirements"] = {"const": []}
        fields["not_reviewed"] = {"const": []}
        if brief:
            fields["findings"] = {"const": []}
    request["response_format"]["json_schema"]["schema"] = form
    return request


def described(request):
    """Moves the form of the answer from the instructions into the request, in place of the tools."""
    system = next(m["content"] for m in request["messages"] if m["role"] == "system")
    form = json.loads(re.search(r"every member of it present:\n(\{.*\})", system).group(1))
    for key in ("tools", "tool_choice", "parallel_tool_calls"):
        request.pop(key, None)
    request["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True}}
    return form


def shorten(node):
    if isinstance(node, dict):
        kinds = node.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if "string" in kinds and "enum" not in node:
            node["maxLength"] = 12
        if "array" in kinds:
            node["maxItems"] = 1
        for part in node.values():
            shorten(part)
    elif isinstance(node, list):
        for part in node:
            shorten(part)


class Proxy(http.server.ThreadingHTTPServer):
    """Listens on a free port; `asked` holds the status of every answer to a question.

    `most`: the limit of an answer in tokens, and the form stays as it is.
    """

    def __init__(self, target, brief=False, most=None):
        self.target, self.brief, self.most, self.asked = target, brief, most, []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.forward(None)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.most is None:
            body = narrowed(body, self.server.brief)
        else:
            body["max_tokens"] = min(body["max_tokens"], self.server.most)
        self.forward(json.dumps(body).encode())

    def forward(self, body):
        there = http.client.HTTPConnection("127.0.0.1", self.server.target, timeout=400)
        there.request(self.command, self.path, body, {"content-type": "application/json"})
        answer = there.getresponse()
        content = answer.read()
        if body is not None:
            self.server.asked.append(answer.status)
        self.send_response(answer.status)
        self.send_header("content-type", answer.headers.get("content-type", "application/json"))
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    print(Proxy(int(sys.argv[1]), most=int(sys.argv[2])).server_port, flush=True)
    threading.Event().wait()
