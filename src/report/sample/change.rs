//! The change of the sample review, in its stored form.

use crate::review::Record;

/// Returns the lines of most files of the sample, a binary file, a rename, a deletion, and a file
/// without its lines.
pub(crate) fn record() -> Record {
    let parts: [&[u8]; 12] = [
        b"diff --git a/.gitattributes b/.gitattributes\nnew file mode 100644\n--- /dev/null\n+++ b/.gitattributes\n\
@@ -0,0 +1 @@\n+*.py -diff\n",
        b"diff --git a/assets/logo.png b/assets/logo.png\nnew file mode 100644\n\
Binary files /dev/null and b/assets/logo.png differ\n",
        b"diff --git \"a/caf\\351/na\\303\\257ve.py\" \"b/caf\\351/na\\303\\257ve.py\"\n\
--- \"a/caf\\351/na\\303\\257ve.py\"\n+++ \"b/caf\\351/na\\303\\257ve.py\"\n\
@@ -2,3 +2,3 @@ import yaml\n \n text = b\"\xff\xfe\".decode()\n-doc = yaml.safe_load(text)\n+doc = yaml.load(text)\n",
        "diff --git a/cmd/serve/main.go b/cmd/serve/main.go\n--- a/cmd/serve/main.go\n+++ b/cmd/serve/main.go\n\
@@ -41,3 +41,3 @@ func list(name string) error {\n \tdir := \"日本語/\" + name\n\
-\tlabel := \"日本\"; out := exec.Command(\"ls\", dir)\n\
+\tlabel := \"日本\"; out := exec.Command(\"sh\", \"-c\", \"ls \"+dir)\n \treturn out.Run()\n"
            .as_bytes(),
        b"diff --git a/config/production.env b/config/production.env\n\
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644\n",
        b"diff --git a/src/old.rs b/src/old.rs\ndeleted file mode 100644\n--- a/src/old.rs\n+++ /dev/null\n\
@@ -1,2 +0,0 @@\n-<script>alert(1)</script>\n-=cmd()\n",
        "diff --git \"a/::error file=x::y\\n::set-output name=a::b.c\" \"b/::error file=x::y\\n::set-output name=a::b.c\"\n\
new file mode 100644\n--- /dev/null\n+++ \"b/::error file=x::y\\n::set-output name=a::b.c\"\n\
@@ -0,0 +1,4 @@\n+<!-- </style></script><script>alert(1)</script> -->\n+int ok = 1;\n\
+/* \u{202e} } if (admin) { \u{2066} */ \x1b[2K ##[error]x\n+::std::move(x);\n\\ No newline at end of file\n"
            .as_bytes(),
        b"diff --git a/src/lib.rs b/src/lib.rs\n--- a/src/lib.rs\n+++ b/src/lib.rs\n\
@@ -7,5 +7,9 @@ mod a;\n \n fn a() {}\n+<<<<<<< HEAD\n fn b() {}\n+=======\n+fn c() {}\n+>>>>>>> topic\n fn d() {}\n \n\
@@ -80,4 +84,3 @@ fn y() {}\n fn z() {\n-    let a = old.name;\n-    a\n+    new.name\n }\n",
        b"diff --git a/src/notes.rs b/src/notes.rs\n--- a/src/notes.rs\n+++ b/src/notes.rs\n\
@@ -10 +10 @@\n-    // later\n+    // TODO: later\n@@ -20 +20,2 @@\n+    // TODO: later\n }\n",
        b"diff --git a/src/pay/client.py b/src/pay/client.py\n--- a/src/pay/client.py\n+++ b/src/pay/client.py\n\
@@ -10,4 +10,5 @@ import boto3\n \n def connect():\n+    key = \"AKIA****************\"\n     return client(\"s3\", key)\n \n",
        b"diff --git a/tests/probe.py b/tools/probe.py\nold mode 100644\nnew mode 100755\nsimilarity index 90%\n\
rename from tests/probe.py\nrename to tools/probe.py\n",
        b"diff --git a/web/cart.ts b/web/cart.ts\n--- a/web/cart.ts\n+++ b/web/cart.ts\n\
@@ -6,3 +6,4 @@\n \n export function total(cart: Cart) {\n+  debugger;\n   return sum(cart);\n",
    ];
    Record {
        text: parts.concat(),
        left_out: vec!["config/production.env".to_owned()],
    }
}
