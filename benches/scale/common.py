"""What the benchmarks of this folder share: a workplace that is removed at the end, measuring, tables, generated code.

Only the standard library of Python is used. All generated repositories are deterministic.
"""

import argparse
import contextlib
import math
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# --- workplace --------------------------------------------------------------------------------------------------------

def options(doc):
    """Returns a parser with the options that all benchmarks of this folder have."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("CLAUDE_REVIEWER") or os.path.join(ROOT, "target", "release", "claude-reviewer")
    parser.add_argument("--binary", default=default, help="program to measure (default: $CLAUDE_REVIEWER, or the release build)")
    parser.add_argument("--quick", action="store_true", help="small sizes and one run: checks the benchmark, measures little")
    parser.add_argument("--runs", type=int, help="runs of each command; the best one counts")
    parser.add_argument("--dir", help="where generated repositories are written and removed (default: target/scale)")
    return parser


@contextlib.contextmanager
def workplace(arguments):
    """Creates an empty folder and removes it at the end, also after an error and a signal to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not os.access(arguments.binary, os.X_OK):
        sys.exit(f"error: no program at {arguments.binary}\nhint: cargo build --release --locked")
    parent = os.path.abspath(arguments.dir or os.path.join(ROOT, "target", "scale"))
    os.makedirs(parent, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="run-", dir=parent)
    try:
        os.mkdir(os.path.join(folder, "home"))
        # A copy: another build that replaces the program meanwhile changes nothing.
        arguments.binary = shutil.copy2(os.path.abspath(arguments.binary), os.path.join(folder, "claude-reviewer"))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environment(folder, home="home", repo=None):
    """Returns variables with a home that only has what the benchmark puts there."""
    keep = {"PATH": os.environ["PATH"], "HOME": os.path.join(folder, home), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    if repo and os.path.exists(os.path.join(repo, "HEAD")):
        keep["GIT_DIR"] = repo  # a bare repository is used only if it is named
    return keep | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}


def git(folder, repo, *args):
    """Runs git and returns what it prints."""
    run = subprocess.run(["git", *args], cwd=repo, env=environment(folder, repo=repo), check=True, capture_output=True)
    return run.stdout.decode()


# --- measuring --------------------------------------------------------------------------------------------------------

# The peak that the system reports for a child includes what its parent held when it started it, so an interpreter with
# nothing in it starts the command.
CHILD = """
import posix, sys, time
null = posix.open("/dev/null", posix.O_RDWR)
began = time.perf_counter()
pid = posix.posix_spawn(sys.argv[1], sys.argv[1:], posix.environ, file_actions=[(posix.POSIX_SPAWN_DUP2, null, n) for n in (0, 1)])
_, status, used = posix.wait4(pid, 0)
print(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss, posix.waitstatus_to_exitcode(status))
"""


class Cost:
    """Wall and CPU time in seconds (children included), peak memory in MiB, and the exit code of a run."""

    def __init__(self, wall, cpu, peak, code):
        self.wall, self.cpu, self.peak, self.code = wall, cpu, peak, code

    def best(self, other):
        """Returns the lower times and the higher peak of two runs."""
        if other is None:
            return self
        return Cost(min(self.wall, other.wall), min(self.cpu, other.cpu), max(self.peak, other.peak), self.code)


def measure(command, cwd, env, accepted=(0, 1)):
    """Runs a command without its output. Ends the benchmark if its exit code is another one than accepted."""
    program = shutil.which(command[0]) or command[0]
    run = subprocess.run([sys.executable, "-I", "-S", "-c", CHILD, program, *command[1:]], cwd=cwd, env=env, check=True,
                         capture_output=True, text=True, errors="replace")
    out = run.stdout.split()
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes there, KiB elsewhere
    cost = Cost(float(out[0]), float(out[1]), int(out[2]) * unit / (1 << 20), int(out[3]))
    if cost.code not in accepted:
        sys.exit(f"error: exit code {cost.code}: {' '.join(command)}\n{run.stderr[-2000:]}")
    return cost


def table(title, head, rows):
    """Prints a Markdown table. The first column is text, the others are numbers."""
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|---|{'--:|' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |")
    sys.stdout.flush()


def seconds(value):
    return f"{value:.1f} s" if value >= 10 else f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.0f} ms"


# --- generated code ---------------------------------------------------------------------------------------------------

WORDS = ("account address amount batch buffer cache channel client clock column config counter cursor customer delta "
         "digest document driver editor element entry event export field filter folder format frame gateway graph handle "
         "header history index invoice item journal kernel label ledger limit listener locale market matrix member message "
         "metric model module network node number offset option order output packet page panel parser partner payload "
         "period player policy portal price printer process product profile project queue quota reader record region "
         "report result route sample schema section segment sensor server session shape signal socket source stage status "
         "storage stream summary symbol target task template thread ticket timer tracker transfer tree update user value "
         "vector vendor version view volume widget window worker").split()

# For each language: its share of 1,000 files, the start of a file, and blocks of which a file has as many as fit. `@a`
# to `@d` are names, `@A` and `@B` names that start with a capital, and `@n` is a number. Blocks are correct code of the
# kinds that applications have: rules parse it as often as they do that of real projects.
LANGUAGES = {
    "py": (180, "import json\nimport logging\nfrom dataclasses import dataclass\n\nfrom .@a import @A\n\nlog = logging.getLogger(__name__)\n\n", (
        "\n\n@dataclass\nclass @A@B@n:\n    \"\"\"A @a of a @b, with its @c.\"\"\"\n\n    @a: str\n    @b: int = @n\n    @c: dict | None = None\n",
        "\n\ndef load_@a_@b_@n(@c, @d=None):\n    \"\"\"Returns the @a of a @b.\"\"\"\n    if @d is None:\n        @d = {}\n    for @a in @c:\n        if @a.@b > @n:\n            @d[@a.name] = @a\n        else:\n            log.debug(\"ignored @a %s\", @a.name)\n    return @d\n",
        "\n\nclass @A@nRepository:\n    def __init__(self, connection):\n        self.connection = connection\n\n    def find_@a(self, @b):\n        cursor = self.connection.execute(\"SELECT @a, @c FROM @d WHERE @b = ?\", (@b,))\n        return [dict(row) for row in cursor.fetchall()]\n\n    def update_@c(self, @a, @d):\n        with self.connection:\n            self.connection.execute(\"UPDATE @b SET @c = ? WHERE id = ?\", (@d, @a))\n",
        "\n\n@app.route(\"/@a/<int:@b>\", methods=[\"GET\"])\ndef show_@a_@n(@b):\n    @c = request.args.get(\"@c\", \"\")\n    @d = service.find(@b, @c)\n    if @d is None:\n        abort(404)\n    return jsonify(@d.to_dict())\n",
        "\n\ndef export_@a_@n(@b, path):\n    try:\n        with open(path, \"w\", encoding=\"utf-8\") as out:\n            json.dump({\"@a\": @b.@c, \"@d\": @n}, out)\n    except OSError as error:\n        log.error(\"cannot write %s: %s\", path, error)\n        raise\n",
    )),
    "ts": (150, "import { @A } from \"./@a\";\nimport type { @B } from \"../types/@b\";\n\n", (
        "export interface @A@B@n {\n  @a: string;\n  @b?: number;\n  @c: Array<@A>;\n}\n\n",
        "export async function load@A@n(@b: string, @c = @n): Promise<@B[]> {\n  const response = await fetch(`/api/@a/${encodeURIComponent(@b)}?@c=${@c}`);\n  if (!response.ok) {\n    throw new Error(`@a failed: ${response.status}`);\n  }\n  return (await response.json()) as @B[];\n}\n\n",
        "export class @A@nService {\n  private readonly @b = new Map<string, @A>();\n\n  constructor(private readonly @c: @B) {}\n\n  add(@a: @A): void {\n    this.@b.set(@a.name, @a);\n  }\n\n  get total(): number {\n    return [...this.@b.values()].reduce((sum, @d) => sum + @d.size, 0);\n  }\n}\n\n",
        "router.get(\"/@a/:@b\", async (req, res, next) => {\n  try {\n    const @c = await service.find(req.params.@b);\n    res.json({ @c, @d: @n });\n  } catch (error) {\n    next(error);\n  }\n});\n\n",
    )),
    "tsx": (60, "import React, { useEffect, useState } from \"react\";\nimport { @A } from \"../components/@a\";\n\n", (
        "export function @A@B@n({ @a, on@B }: { @a: string; on@B: () => void }) {\n  const [@c, set@A] = useState<number>(@n);\n  useEffect(() => {\n    set@A((value) => value + 1);\n  }, [@a]);\n  return (\n    <section className=\"@a-@b\">\n      <h2>{@a}</h2>\n      <button type=\"button\" onClick={on@B}>\n        {@c}\n      </button>\n    </section>\n  );\n}\n\n",
    )),
    "js": (110, "const { @a } = require('./@b');\n\n", (
        "function @a@A@n(@b, @c) {\n  if (!@b || @b.length > @n) {\n    return [];\n  }\n  return @b.filter((@d) => @d.@c === @c).map((@d) => @d.@a);\n}\n\n",
        "exports.@a@n = async function @a@n(req, res) {\n  const @b = await db.query('SELECT * FROM @c WHERE @d = $1', [req.params.@d]);\n  res.status(200).json({ @a: @b.rows });\n};\n\n",
        "$('.@a-@b').on('click', function () {\n  const @c = $(this).data('@d');\n  $('#@a-@n').text(@c).show();\n});\n\n",
        "class @A@n extends Base {\n  render(@a) {\n    const node = document.createElement('div');\n    node.className = '@b';\n    node.textContent = @a.@c;\n    return node;\n  }\n}\n\n",
    )),
    "go": (120, "package @a\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\t\"net/http\"\n)\n\n", (
        "// @A@B@n is the @a of a @b.\ntype @A@B@n struct {\n\t@A string `json:\"@a\"`\n\t@B int    `json:\"@b,omitempty\"`\n}\n\n",
        "func (s *@A@nStore) Find@B(ctx context.Context, @c string) (*@B, error) {\n\trow := s.db.QueryRowContext(ctx, \"SELECT @a, @b FROM @d WHERE @c = $1\", @c)\n\tvar @d @B\n\tif err := row.Scan(&@d.Name, &@d.Size); err != nil {\n\t\treturn nil, fmt.Errorf(\"find @b: %w\", err)\n\t}\n\treturn &@d, nil\n}\n\n",
        "func handle@A@n(w http.ResponseWriter, r *http.Request) {\n\t@b := r.URL.Query().Get(\"@b\")\n\tif @b == \"\" {\n\t\thttp.Error(w, \"@b is missing\", http.StatusBadRequest)\n\t\treturn\n\t}\n\twriteJSON(w, map[string]any{\"@c\": @n, \"@d\": len(@b)})\n}\n\n",
        "func sum@A@n(@b []int) int {\n\ttotal := 0\n\tfor _, @c := range @b {\n\t\tif @c > @n {\n\t\t\ttotal += @c\n\t\t}\n\t}\n\treturn total\n}\n\n",
    )),
    "java": (110, "package com.example.@a;\n\nimport java.util.List;\nimport java.util.Map;\n\npublic class @A@B {\n", (
        "    private final Map<String, @A> @a@n = new java.util.HashMap<>();\n\n    public List<@B> find@A@n(String @b) {\n        return repository.findBy@B(@b).stream().filter(@c -> @c.get@A() > @n).toList();\n    }\n\n",
        "    @GetMapping(\"/@a/{@b}\")\n    public ResponseEntity<@A> show@A@n(@PathVariable Long @b) {\n        return service.find(@b).map(ResponseEntity::ok).orElse(ResponseEntity.notFound().build());\n    }\n\n",
        "    public void save@A@n(@A @b) throws SQLException {\n        try (PreparedStatement statement = connection.prepareStatement(\"INSERT INTO @a (@c, @d) VALUES (?, ?)\")) {\n            statement.setString(1, @b.getName());\n            statement.setInt(2, @n);\n            statement.executeUpdate();\n        }\n    }\n\n",
    )),
    "rb": (40, "# frozen_string_literal: true\n\nmodule @A\n", (
        "  class @B@n < ApplicationRecord\n    belongs_to :@a\n    validates :@b, presence: true\n\n    def @c_total\n      @d.where(@a: @n).sum(:@b)\n    end\n  end\n\n",
        "  def show_@a_@n\n    @b = @A.find(params[:id])\n    render json: @b.as_json(only: %i[@c @d])\n  end\n\n",
    )),
    "php": (50, "<?php\n\nnamespace App\\@A;\n\n", (
        "final class @A@B@n\n{\n    public function __construct(private @A $@a) {}\n\n    public function find@B(int $@b): array\n    {\n        $statement = $this->@a->prepare('SELECT @c FROM @d WHERE id = ?');\n        $statement->execute([$@b]);\n        return $statement->fetchAll();\n    }\n}\n\n",
        "function format_@a_@n(string $@b): string\n{\n    return htmlspecialchars($@b, ENT_QUOTES) . ' @c';\n}\n\n",
    )),
    "rs": (40, "use std::collections::HashMap;\n\nuse crate::@a::@A;\n\n", (
        "/// The @a of a @b.\n#[derive(Debug, Clone)]\npub struct @A@B@n {\n    pub @a: String,\n    pub @b: u32,\n}\n\n",
        "pub fn load_@a_@n(@b: &HashMap<String, @A>, @c: u32) -> Result<Vec<String>, Error> {\n    let mut out = Vec::new();\n    for (name, @d) in @b {\n        if @d.size > @c {\n            out.push(name.clone());\n        }\n    }\n    Ok(out)\n}\n\n",
    )),
    "c": (30, "#include <stdio.h>\n#include <string.h>\n#include \"@a.h\"\n\n", (
        "static int read_@a_@n(struct @b *@c, size_t @d)\n{\n    if (@c == NULL || @d > @n)\n        return -1;\n    memcpy(@c->data, @c->source, @d);\n    @c->used = @d;\n    return 0;\n}\n\n",
    )),
    "sh": (20, "#!/bin/sh\nset -eu\n\n", ("@a_@n() {\n    for @b in \"$@\"; do\n        if [ -f \"$@b\" ]; then\n            cp \"$@b\" \"$@c/@d\"\n        fi\n    done\n}\n\n",)),
    "yml": (40, "version: 2\nname: @a\n\n", ("@a_@n:\n  @b: @n\n  @c:\n    - name: @d\n      enabled: true\n",)),
    "json": (20, "{\n  \"name\": \"@a\"", (",\n  \"@a_@n\": {\n    \"@b\": @n,\n    \"@c\": \"@d\"\n  }",)),
    "md": (30, "# @A and @B\n\n", ("The @a of a @b is @n or more. See `@c` for its @d.\n\n- `@a`: the @b of a @c\n- `@d`: at most @n\n\n",)),
}
# Code with findings, one in about 300 blocks, as real trees have it.
FLAWS = {
    "py": "\n\ndef run_@a_@n():\n    @b = request.args[\"@b\"]\n    os.system(\"convert \" + @b)\n",
    "js": "app.get('/@a@n', (req, res) => {\n  res.send('<p>' + req.query.@b + '</p>');\n});\n\n",
    "ts": "// TODO: remove the @a of @b @n\n",
    "go": "func fetch@A@n(w http.ResponseWriter, r *http.Request) {\n\tfmt.Fprintf(w, \"<p>%s</p>\", r.FormValue(\"@a\"))\n}\n\n",
    "php": "function show_@a_@n(): void\n{\n    echo '<p>' . $_GET['@b'] . '</p>';\n}\n\n",
}
ENDS = {"java": "}\n", "rb": "end\n", "json": "\n}\n"}
CYCLE = 1_000  # files after which languages and sizes repeat


def compiled(text):
    """Turns a block into a format string of `%` and its number of lines. Decorators of Python stay."""
    return re.sub(r"@(?!app\.|dataclass)([a-dABn])", r"%(\1)s", text.replace("%", "%%")), text.count("\n")


def shape_of_files():
    """Returns the language and the number of lines of each file of a cycle. Sizes have a logarithmic normal
    distribution: half of the files are shorter than 60 lines, one in a hundred has more than 700."""
    languages = [name for name, (share, _, _) in LANGUAGES.items() for _ in range(share)]
    normal = statistics.NormalDist(math.log(60), 1.05)
    sizes = [int(math.exp(normal.inv_cdf((i + 0.5) / CYCLE))) for i in range(CYCLE)]
    rng = random.Random(18)
    rng.shuffle(sizes)
    rng.shuffle(languages)
    return list(zip(languages, sizes))


class Sources:
    """Generates files. The same number of files always gives the same paths and texts."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.shape = shape_of_files()
        self.blocks = {name: [compiled(block) for block in (start, *blocks)] for name, (_, start, blocks) in LANGUAGES.items()}
        self.flaws = {name: compiled(block) for name, block in FLAWS.items()}

    def names(self):
        choose = self.rng.choice
        a, b = choose(WORDS), choose(WORDS)
        return {"a": a, "b": b, "c": choose(WORDS), "d": choose(WORDS), "A": a.title(), "B": b.title(), "n": self.rng.randrange(10_000)}

    def text(self, language, lines):
        """Returns a file of about this many lines."""
        start, *blocks = self.blocks[language]
        parts, written = [start[0] % self.names()], start[1]
        while written < lines:
            flaw = language in self.flaws and self.rng.random() < 1 / 300
            block, count = self.flaws[language] if flaw else self.rng.choice(blocks)
            parts.append(block % self.names())
            written += count
        return "".join(parts) + ENDS.get(language, "")

    def files(self, count, lines=None):
        """Generates paths and texts: about 25 files in a folder; all with the same number of lines, if it is given."""
        for i in range(count):
            language, size = self.shape[i % CYCLE]
            folder = i // 25
            path = f"{WORDS[folder % len(WORDS)]}{folder // 500}/{WORDS[folder * 7 % len(WORDS)]}{folder}/{self.rng.choice(WORDS)}_{i}.{language}"
            yield path, self.text(language, lines or size)


def tree(folder, count, lines=None):
    """Writes a bare repository of one commit. Returns its path, and the number of lines and bytes of its files."""
    repo = os.path.join(folder, f"tree-{count}-{lines or 'mixed'}.git")
    git(folder, folder, "init", "-q", "--bare", "-b", "main", repo)
    importer = subprocess.Popen(["git", "fast-import", "--quiet", "--depth=0"], cwd=repo, env=environment(folder, repo=repo),
                                stdin=subprocess.PIPE)
    importer.stdin.write(b"commit refs/heads/main\ncommitter A <a@example.com> 1700000000 +0000\ndata 1\nc\n")
    total = size = 0
    for path, text in Sources(1).files(count, lines):
        data = text.encode()
        total, size = total + text.count("\n"), size + len(data)
        importer.stdin.write(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
    importer.stdin.close()
    if importer.wait() != 0:
        sys.exit("error: git fast-import failed")
    return repo, total, size
