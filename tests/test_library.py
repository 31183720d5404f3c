"""The programs of docs/library.md run, and the public names are those of the package."""

import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import uvicorn

import bpac

PAGE = Path(__file__).parents[1] / "docs" / "library.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
(SERVICE,) = (program for program in PROGRAMS if "FastAPI" in program)


@pytest.mark.parametrize("program", [program for program in PROGRAMS if program is not SERVICE])
def test_a_program_of_the_page_runs(program: str, tmp_path: Path) -> None:
    """Each program runs as it stands, and prints no warning."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


def test_synchronous_endpoints_lose_no_round(tmp_path: Path) -> None:
    """The FastAPI program counts each request once, though its endpoints run in many threads."""
    program: dict[str, Any] = {}
    exec(compile(SERVICE, "service.py", "exec"), program)
    app = program["app"]
    app.state.path = tmp_path / "router.db"
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
        address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

        def ask(number: int) -> bytes:
            with urlopen(f"{address}/answer?question={number}") as response:
                return bytes(response.read())

        with ThreadPoolExecutor(16) as callers:
            by_expert = sum(b'"expert"' in answer for answer in callers.map(ask, range(400)))
        with urlopen(f"{address}/status") as response:
            assert b'"steps":400' in response.read().replace(b" ", b"")
    finally:
        server.should_exit = True
        thread.join()
    with bpac.open(tmp_path / "router.db") as router:
        assert router.summary().expert_calls == by_expert
        assert router.owed == ()
        assert router.under_way == ()


def test_public_names_are_there_and_documented() -> None:
    """Each name in ``__all__`` exists, has a docstring, and the list is sorted as ruff sorts it."""
    for name in bpac.__all__:
        assert getattr(bpac, name).__doc__ or name == "__version__"
    assert len(set(bpac.__all__)) == len(bpac.__all__)
