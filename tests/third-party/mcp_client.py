"""The server through the Python SDK, which speaks the newest generation of the protocol: no handshake.

    mcp_client.py BINARY REPOSITORY SLOW

SLOW is a repository whose policy asks a model that never answers.
"""
import asyncio
import sys

import mcp
from mcp.client.stdio import StdioServerParameters

BINARY, REPOSITORY, SLOW = sys.argv[1:]


def server(root):
    return StdioServerParameters(command=BINARY, args=["serve-mcp", "--root", root], cwd=root)


async def main(mode):
    async with mcp.Client(server(REPOSITORY), mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert len(tools) == 19, [t.name for t in tools]
        seen = []

        async def progress(done, total, message):
            seen.append(done)

        result = await client.call_tool("request_review", {"summary": "A division."}, progress_callback=progress)
        assert not result.is_error, result
        assert result.structured_content["outcome"] == "reviewed", result.structured_content
        assert seen and seen == sorted(seen), seen
        name = result.structured_content["review_id"]
        bad = await client.call_tool("get_review_history", {"review_id": "../../x"})
        assert bad.is_error and bad.structured_content["retryable"] is False, bad
        done = await client.call_tool("mark_review_complete", {"review_id": name, "final_status": "abandoned"})
        assert done.structured_content["status"] == "abandoned", done
        for tool, arguments in [
            ("review_staged", {}),
            ("review_unstaged", {"repository_path": REPOSITORY}),
            ("review_commit", {"commit_sha": "HEAD"}),
            ("review_branch", {"branch": "HEAD", "base_branch": "main"}),
            ("review_code", {"code": "x = 1\n", "language": "python"}),
            ("claude_judge_review", {"contract_path": "_handoff/TASK_CONTRACT.json"}),
            ("claude_validate_proposal", {"proposal_path": "PROPOSAL_FINAL.md"}),
            ("claude_security_audit", {"files": ["price.py"], "working_directory": REPOSITORY}),
            ("claude_resolve_conflict", {
                "contract_path": "_handoff/TASK_CONTRACT.json", "rebuttal_path": "REBUTTAL.md",
                "judge_report_path": "_handoff/JUDGE_REPORT.json"}),
            ("claude_health", {}),
        ]:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error and result.structured_content, (tool, result)
        print(f"{mode}: protocol {client.protocol_version}, {len(seen)} words of progress")

    async with mcp.Client(server(SLOW), mode=mode) as client:
        try:
            async with asyncio.timeout(2):
                await client.call_tool("request_review", {"summary": "Slow."})
            raise AssertionError("a review that cannot end has ended")
        except TimeoutError:
            pass
        result = await client.call_tool("claude_health", {})
        assert not result.is_error, result


for generation in ("auto", "legacy"):
    asyncio.run(main(generation))
