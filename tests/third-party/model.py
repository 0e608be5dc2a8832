"""A model on loopback for tests in Python: it reviews, confirms what it claims, plans a fix and makes it.

It answers Chat Completions in a thread of the test. What it says is given when it starts.
"""
import http.server
import json
import re
import threading


def claim(file, code, line, title, **more):
    """Returns a finding about a line of a file that occurs in its code once."""
    return {"file": file, "line": code.split("\n").index(line) + 1, "end_line": None, "quote": line, "failure": "It fails.",
            "message": "It is wrong.", "title": title, "severity": "major", "category": "bug", "cwe": None,
            "suggestion": None, "replacement": None, "convention": None, **more}


class Model:
    """A model that listens at `port` until the process ends, and keeps all `prompts`."""

    def __init__(self, review, plan, attempts, report="Done."):
        """Starts it. `review` maps a prompt to members of the answer; `attempts` has the tool calls of each attempt at a fix,
        as pairs of a name and arguments; the last one is repeated."""
        self.review, self.plan, self.attempts, self.report = review, plan, attempts, report
        self.prompts, self.lock = [], threading.Lock()
        # While it is not set, attempts at a fix wait.
        self.gate = threading.Event()
        self.gate.set()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"model": self}))
        self.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def answer(self, request):
        """Returns the document that answers a request, or the tools that are called instead."""
        messages = request["messages"]
        prompt = "\n".join(m["content"] for m in messages if isinstance(m.get("content"), str))
        self.prompts.append(prompt)
        nonce = re.findall(r"^nonce: (\S+)$", prompt, re.M)[-1]
        form = json.dumps(request.get("response_format", "")) + prompt
        if "Plan how to fix the findings above." in prompt:
            return {"nonce": nonce, **self.plan}, []
        if "in the private copy" in prompt:
            if any(m["role"] == "tool" for m in messages):
                return {"nonce": nonce, "summary": self.report, "problem": None}, []
            self.gate.wait(60)
            with self.lock:
                calls = self.attempts.pop(0) if len(self.attempts) > 1 else self.attempts[0]
            return None, calls
        if '"refuted"' in form:
            return {"nonce": nonce, "refuted": False, "reason": "It is so.", "quote": ""}, []
        files = sorted(set(re.findall(r"^file: (\S+)", prompt, re.M)))
        return {"nonce": nonce, "summary": "Read.", "findings": [], "design_compliance": None, "missing_requirements": [],
                "not_reviewed": [], "files_reviewed": files, **self.review(prompt)}, []


class Handler(http.server.BaseHTTPRequestHandler):
    model = None

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer, calls = self.model.answer(request)
        message = {"role": "assistant", "content": json.dumps(answer) if answer else None}
        if calls:
            message["tool_calls"] = [
                {"index": i, "id": f"call_{i}", "type": "function",
                 "function": {"name": name, "arguments": json.dumps(arguments)}}
                for i, (name, arguments) in enumerate(calls)]
        usage = {"prompt_tokens": 9000, "completion_tokens": 100, "total_tokens": 9100}
        is_streamed = request.get("stream")
        choice = {"index": 0, "delta" if is_streamed else "message": message,
                  "finish_reason": "tool_calls" if calls else "stop"}
        text = json.dumps({"id": "1", "model": "stub", "choices": [choice], "usage": usage})
        if is_streamed:
            text = f"data: {text}\n\ndata: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if is_streamed else "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
