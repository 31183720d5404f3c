"""``bpac warm``: a game that starts from history where the mathematics allows it, in a gateway that starts later."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.routing.audit.audit import audit_journal
from bpac.testing import ScriptedServer
from tests.gateway.configured import get_json, settings
from tests.gateway.law import KnownPair, Question
from tests.gateway.raw import post
from tests.gateway.running import RunningGateway
from tests.gateway.serving import to_toml


def configured(directory: Path, base_url: str = "http://127.0.0.1:1/v1", **route: Any) -> dict[str, Any]:
    """A configuration with a store in a directory, also written to a file there."""
    options = {"epsilon": 0.4, **route}
    config = settings(base_url, gateway={"store": f"sqlite:///{directory / 'bpac.db'}"}, **options)
    (directory / "gateway.toml").write_text(to_toml(config))
    return config


def table(directory: Path, count: int = 200, **more: Any) -> Path:
    """A table of questions that the gateway will not be asked."""
    path = directory / "history.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["uncertainty", "loss", *more])
        writer.writeheader()
        for number in range(10_000, 10_000 + count):
            question = Question(number)
            writer.writerow({"uncertainty": question.uncertainty, "loss": question.loss, **more})
    return path


def warm(directory: Path, capsys: pytest.CaptureFixture[str], *words: Any) -> Any:
    """What ``bpac warm`` reports, or the error it ends with."""
    code = main(["warm", str(directory / "gateway.toml"), *map(str, words), "--json"])
    printed = capsys.readouterr()
    return json.loads(printed.out) if code == 0 else (code, printed.err)


def asked(config: dict[str, Any], first: int, count: int, body: dict[str, Any] | None = None) -> list[dict[str, str]]:
    """The headers of the answers to some questions, from a gateway that is started and stopped."""
    with RunningGateway(config) as gateway:
        found = [post(gateway.url, Question(first + n).body | (body or {})).headers for n in range(count)]
        gateway.idle()
        return found


def test_a_gateway_routes_from_its_first_request_after_a_warm_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """History opens the threshold before the first request; the journal with its history passes its audit."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url)
        report = warm(tmp_path, capsys, table(tmp_path))
        assert (report["game"], report["rows"], report["source"]) == (1, 200, "table history.csv")
        assert report["threshold"] > 0.0
        assert any("same distribution" in text for text in report["assumes"])
        assert any("without looking at the losses" in text for text in report["assumes"])
        (first,) = asked(config, 0, 1)
        assert first["x-bpac-decision"].startswith("dec-1-1-")
        assert float(first["x-bpac-threshold"]) == pytest.approx(report["threshold"], rel=1e-3)
        assert asked(config, 1, 1)[0]["x-bpac-decision"].startswith("dec-1-2-")
        with RunningGateway(config) as gateway:
            assert gateway.status()["state"] == "routing"
    assert main(["export", str(tmp_path / "gateway.toml")]) == 0
    audit = audit_journal(capsys.readouterr().out.splitlines())
    assert (audit.rounds, audit.differences, audit.unproved) == (2, [], [])


def test_an_older_game_of_another_epsilon_is_learned_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the store or from an exported journal, kept drafts included; the result is the same."""
    with ScriptedServer(KnownPair()) as models:
        asked(configured(tmp_path, models.base_url, epsilon=0.3), 0, 150)
        assert main(["export", str(tmp_path / "gateway.toml"), "--out", str(tmp_path / "old.jsonl")]) == 0
        config = configured(tmp_path, models.base_url)
        report = warm(tmp_path, capsys, "--game", 1)
        assert (report["game"], report["rows"]) == (2, 150)
        assert report["threshold"] > 0.0
        again = warm(tmp_path, capsys, tmp_path / "old.jsonl", "--new-game")
        assert (again["game"], again["rows"], again["threshold"]) == (3, 150, report["threshold"])
        assert asked(config, 200, 1)[0]["x-bpac-decision"].startswith("dec-3-1-")
        with RunningGateway(config) as gateway:
            assert gateway.status()["expected_rounds"] == 150  # as much traffic as the older game had
        # The older game is as it was, and goes on when its own terms are in force again.
        old = configured(tmp_path, models.base_url, epsilon=0.3)
        assert asked(old, 201, 1)[0]["x-bpac-decision"].startswith("dec-1-151-")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"score": "perplexity"}, "score.kind changed from MeanTokenProbability to Perplexity"),
        ({"loss": {"equal": "text"}}, "loss.equal changed from final to text"),
        ({"model": {"body": {"seed": 1}}}, "draft.body changed; expert.body changed"),
    ],
)
@pytest.mark.parametrize("source", ["game", "journal"])
def test_a_game_with_other_models_scores_or_losses_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], said: str, source: str
) -> None:
    """Thresholds certified for one score say nothing about another: nothing is written."""
    with ScriptedServer(KnownPair()) as models:
        asked(configured(tmp_path, models.base_url), 0, 5)
        assert main(["export", str(tmp_path / "gateway.toml"), "--out", str(tmp_path / "old.jsonl")]) == 0
        config = configured(tmp_path, models.base_url, **change)
        words = ["--game", 1] if source == "game" else [tmp_path / "old.jsonl"]
        code, error = warm(tmp_path, capsys, *words)
        assert (code, said in error) == (2, True)
        assert asked(config, 9, 1)[0]["x-bpac-decision"].startswith("dec-2-1-")


def test_history_is_not_counted_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither twice before the first request, nor after it; a new game begins only if that is asked for."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url)
        path = table(tmp_path)
        first = warm(tmp_path, capsys, path)
        code, error = warm(tmp_path, capsys, path)
        assert (code, "game 1 has these terms and 200 rounds of history already" in error) == (2, True)
        asked(config, 0, 3)
        code, error = warm(tmp_path, capsys, path)
        assert (code, "game 1 has these terms and 3 rounds already" in error) == (2, True)
        assert asked(config, 3, 1)[0]["x-bpac-decision"].startswith("dec-1-4-")
        second = warm(tmp_path, capsys, path, "--new-game")
        assert (second["game"], second["threshold"]) == (2, first["threshold"])
        assert asked(config, 4, 1)[0]["x-bpac-decision"].startswith("dec-2-1-")


def test_audited_rounds_alone_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of all audits is no sample of the traffic; a thinned one is."""
    with ScriptedServer(KnownPair()) as models:
        asked(configured(tmp_path, models.base_url), 0, 120)
        export = ["export", str(tmp_path / "gateway.toml"), "--format", "table", "--out"]
        assert main([*export, str(tmp_path / "all.csv"), "--all-audits"]) == 0
        assert main([*export, str(tmp_path / "thinned.csv")]) == 0
        capsys.readouterr()
        configured(tmp_path, models.base_url, epsilon=0.35)
        code, error = warm(tmp_path, capsys, tmp_path / "all.csv")
        assert (code, "the expert was not called are missing" in error) == (2, True)
        assert warm(tmp_path, capsys, tmp_path / "thinned.csv")["game"] == 2


def test_a_game_that_lost_its_end_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is missing may be the rounds with losses. The same holds for a backup that others may have gone on from."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url)
        asked(config, 0, 5)
        assert main(["backup", str(tmp_path / "gateway.toml"), "--out", str(tmp_path / "copy.db")]) == 0
        asked(config, 5, 5)
    (tmp_path / "bpac.db").write_bytes((tmp_path / "copy.db").read_bytes())
    capsys.readouterr()
    code, error = warm(tmp_path, capsys, "--game", 1)
    assert (code, "these may be the rounds with losses" in error) == (1, True)


def test_a_running_gateway_is_not_disturbed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store has one writer: the command ends with an error, and the gateway goes on."""
    with ScriptedServer(KnownPair()) as models, RunningGateway(configured(tmp_path, models.base_url)) as gateway:
        code, error = warm(tmp_path, capsys, table(tmp_path))
        assert (code, "is in use by process" in error) == (1, True)
        assert post(gateway.url, Question(1).body).status == 200


def test_a_segment_is_started_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only that segment starts from history, with the share of alpha that it has in the gateway."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url, segment_by="user", alpha_scope="all", most_segments=3, alpha=0.3)
        path = table(tmp_path)
        code, error = warm(tmp_path, capsys, path)
        assert (code, "--segment is missing" in error) == (2, True)
        assert warm(tmp_path, capsys, path, "--segment", "München")["game"] == 1
        assert warm(tmp_path, capsys, path, "--segment", "Wien")["game"] == 2
        code, error = warm(tmp_path, capsys, path, "--segment", "Bern")
        assert (code, "increase most_segments" in error) == (2, True)
        with RunningGateway(config) as gateway:
            for name in ("München", "Wien", "Bern"):
                post(gateway.url, Question(1).body | {"user": name})
            gateway.idle()
            games = get_json(f"{gateway.url}/v1/status")["routes"]["homework"]
        found = {game["segment"]: (game["game"], game["threshold"] > 0.0) for game in games}
        assert found == {"München": (1, True), "Wien": (2, True), "*": (3, False)}


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ({"assume": "any"}, "it cannot start from history"),
        ({"policy": "paper-prior"}, "it cannot start from history"),
        ({"policy": "always"}, "learns nothing"),
    ],
)
def test_policies_whose_promise_history_would_break_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], route: dict[str, Any], said: str
) -> None:
    """An average over all rounds would include the history, which nobody was served."""
    configured(tmp_path, **route)
    code, error = warm(tmp_path, capsys, table(tmp_path))
    assert (code, said in error) == (2, True)
    assert error.count("\n") == 1


def test_the_budget_assumes_nothing_about_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its promise is about what is served, and history is not."""
    configured(tmp_path, policy="budget")
    report = warm(tmp_path, capsys, table(tmp_path))
    assert report["assumes"][0].startswith("nothing")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give either TABLE or --game"),
        (["--game", "7"], "there is no such game"),
        (["missing.csv"], "cannot be read"),
        (["bad.csv"], "bad.csv: row 1, column loss"),
        (["cut.jsonl"], "cut.jsonl"),
        (["history.csv", "--route", "x"], "--route must be one of homework"),
        (["history.csv", "--segment", "x"], "has no segment_by"),
    ],
)
def test_mistakes_are_said_in_one_line_and_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    """The error names the file, the row and the column, or the option; no game is begun."""
    monkeypatch.chdir(tmp_path)
    configured(tmp_path)
    table(tmp_path)
    (tmp_path / "bad.csv").write_text("uncertainty,loss\n0.5,7\n")
    (tmp_path / "cut.jsonl").write_text('{"entry":"opened","settings":{}}\n{"entry":"deci')
    code, error = warm(tmp_path, capsys, *words)
    assert code in (1, 2)
    assert said in error
    assert error.count("\n") == 1
    assert warm(tmp_path, capsys, tmp_path / "history.csv")["game"] == 1


def test_a_bad_journal_is_not_blamed_on_the_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The error of the file is all that is said: nothing was written, and the store did not fail."""
    configured(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"entry":"x"}\n')
    _, error = warm(tmp_path, capsys, tmp_path / "bad.jsonl")
    assert "line 1 is not a journal entry" in error
    assert not caplog.records


def test_the_text_says_what_is_assumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json, the assumptions are listed."""
    configured(tmp_path)
    assert main(["warm", str(tmp_path / "gateway.toml"), str(table(tmp_path))]) == 0
    printed = capsys.readouterr().out
    assert "game 1 begins with a threshold of" in printed
    assert "  - the requests to come are drawn from the same distribution as the history" in printed
