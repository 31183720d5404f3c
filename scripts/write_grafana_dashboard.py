"""Write deploy/grafana/dashboards/bpac.json, the Grafana dashboard: ``python -m scripts.write_grafana_dashboard``."""

import json
from pathlib import Path
from typing import Any

from scripts.grafana_panels import ROWS, GrafanaPanel

FILE = Path(__file__).parents[1] / "deploy" / "grafana" / "dashboards" / "bpac.json"
SOURCE = {"type": "prometheus", "uid": "bpac-prometheus"}
WIDTH, HEIGHT = 8, 8


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        at = {"h": 1, "w": 24, "x": 0, "y": top}
        panels.append(
            {"id": len(panels) + 1, "type": "row", "title": title, "gridPos": at, "collapsed": False, "panels": []}
        )
        top += 1
        height = 4 if row[0].kind == "stat" else HEIGHT
        for number, panel in enumerate(row):
            x, y = WIDTH * (number % 3), top + height * (number // 3)
            panels.append(_panel(panel, len(panels) + 1, {"h": height, "w": WIDTH, "x": x, "y": y}))
        top += height * -(-len(row) // 3)
    return {
        "uid": "bpac",
        "title": "bpac",
        "description": "Replicas of the gateway: service, promise, savings, models and store.",
        "tags": ["bpac"],
        "schemaVersion": 39,
        "version": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "editable": True,
        "templating": {"list": [_variable("route"), _variable("segment", "segment of the route")]},
        "annotations": {"list": []},
        "panels": panels,
    }


def _panel(panel: GrafanaPanel, number: int, place: dict[str, int]) -> dict[str, Any]:
    custom = {"scaleDistribution": {"type": "log", "log": 10}} if panel.logarithmic else {}
    targets = [
        {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": query, "legendFormat": legend}
        for at, (legend, query) in enumerate(panel.lines.items())
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "custom": custom}, "overrides": []},
        "targets": targets,
    }


def _variable(name: str, label: str = "") -> dict[str, Any]:
    query = f"label_values(bpac_threshold, {name})"
    return {
        "name": name,
        "label": label or name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        # The only game of a route without segments has an empty one.
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def text() -> str:
    """The file."""
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(text(), encoding="utf-8")
