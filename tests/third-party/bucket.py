#!/usr/bin/env python3
"""Another client of an object store on loopback: prepares a bucket, and rewrites what is in it.

    bucket.py s3|gs|azblob ADDRESS create|list|get|put|delete [NAME]

The bucket or container is "reviews". `put` reads standard input. An address of Azure contains a signature, which
`bucket.py azblob ACCOUNT KEY sign PERMISSIONS` prints: one for everything in the account, for a day.
"""
import base64
import datetime
import hashlib
import hmac
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

BUCKET = "reviews"


def send(method, url, body=None, **headers):
    # Without a type, urllib names that of a form, which some servers then parse.
    headers = {"Content-Type": "application/octet-stream", **headers}
    request = urllib.request.Request(url, data=body, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read()


def s3(address, action, name, body):
    # The server does not check a signature, but refuses a request without one.
    key = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, Signature=x"}
    if action == "list":
        return re.findall(r"<Key>([^<]*)</Key>", send("GET", f"{address}/{BUCKET}", **key).decode())
    method = {"create": "PUT", "put": "PUT", "get": "GET", "delete": "DELETE"}[action]
    return send(method, f"{address}/{BUCKET}" + (f"/{name}" if name else ""), body, **key)


def gs(address, action, name, body):
    quoted = urllib.parse.quote(name or "", safe="")
    bucket = f"{address}/storage/v1/b"
    if action == "create":
        made = json.dumps({"name": BUCKET}).encode()
        return send("POST", f"{bucket}?project=test", made, **{"Content-Type": "application/json"})
    if action == "list":
        return [item["name"] for item in json.loads(send("GET", f"{bucket}/{BUCKET}/o")).get("items", [])]
    if action == "put":
        url = f"{address}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={quoted}"
        return send("POST", url, body)
    method = {"get": "GET", "delete": "DELETE"}[action]
    return send(method, f"{bucket}/{BUCKET}/o/{quoted}" + ("?alt=media" if action == "get" else ""))


def azblob(address, action, name, body):
    address, signature = address.split("?")
    version = {"x-ms-version": "2022-11-02"}
    container = f"{address}/{BUCKET}"
    if action == "create":
        return send("PUT", f"{container}?restype=container&{signature}", b"", **version)
    if action == "list":
        answer = send("GET", f"{container}?restype=container&comp=list&{signature}", **version)
        return re.findall(r"<Name>([^<]*)</Name>", answer.decode())
    method = {"put": "PUT", "get": "GET", "delete": "DELETE"}[action]
    return send(method, f"{container}/{name}?{signature}", body, **version, **{"x-ms-blob-type": "BlockBlob"})


def signed(account, key, permissions):
    """Returns a shared access signature of an account."""
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    fields = {"sp": permissions, "ss": "b", "srt": "sco", "st": "", "se": end.strftime("%Y-%m-%dT%H:%M:%SZ"),
              "sip": "", "spr": "", "sv": "2022-11-02", "ses": ""}
    text = "".join(f"{value}\n" for value in [account, *fields.values()])
    made = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    query = {name: value for name, value in fields.items() if value}
    return urllib.parse.urlencode({**query, "sig": base64.b64encode(made).decode()})


def main():
    kind, address, action, name = (sys.argv[1:] + [None])[:4]
    if len(sys.argv) > 4 and sys.argv[4] == "sign":
        print(signed(address, action, sys.argv[5]))
        return
    body = sys.stdin.buffer.read() if action == "put" else None
    done = {"s3": s3, "gs": gs, "azblob": azblob}[kind](address, action, name, body)
    if action == "list":
        print("\n".join(done))
    elif action == "get":
        sys.stdout.buffer.write(done)


try:
    main()
except urllib.error.HTTPError as refusal:
    sys.exit(f"{refusal}: {refusal.read()[:500]}")
