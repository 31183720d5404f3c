"""A real headless browser: Debian's Chromium, driven by Playwright, and the errors it reports."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page, Request, Response, sync_playwright

DESKTOP, PHONE = (1280, 900), (390, 844)
Scheme = Literal["light", "dark"]
GROUNDS: dict[Scheme, str] = {"light": "rgb(244, 246, 248)", "dark": "rgb(14, 19, 24)"}
# Only these impacts fail a test.
SERIOUS = ("serious", "critical")


def chromium() -> str:
    """The path of Chromium."""
    found = shutil.which("chromium")
    assert found, "these tests need Debian's browser: apt-get install -y chromium  (make test does it)"
    return found


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser until the block ends."""
    # The sandbox needs a user who is not root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page in a new window that records all errors, and fails at its end if there were any.

    Parameters
    ----------
    browser: the browser.
    size: width and height of the window (default: desktop).
    scheme: the colour scheme that the system prefers (default: light).
    any_certificate: whether certificates that nobody has signed are accepted (default: false).
    """

    def __init__(
        self,
        browser: Browser,
        size: tuple[int, int] = DESKTOP,
        scheme: Scheme = "light",
        *,
        any_certificate: bool = False,
    ) -> None:
        viewport: Any = {"width": size[0], "height": size[1]}
        self.context: BrowserContext = browser.new_context(
            viewport=viewport, color_scheme=scheme, reduced_motion="reduce", ignore_https_errors=any_certificate
        )
        self.context.set_default_timeout(20_000)
        self.page: Page = self.context.new_page()
        self.troubles: list[str] = []
        self._forgiven = False
        self.requests: list[str] = []
        self.page.on("console", lambda message: self._console(message.type, message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._response)

    def _console(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.troubles.append(f"{kind}: {text}")

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page was left while it was loading
            self.troubles.append(f"failed: {request.url} ({request.failure})")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.troubles.append(f"status {response.status}: {response.url}")

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.context.close()
        if kind is None and not self._forgiven:
            assert self.troubles == [], self.troubles

    def forgive(self, *, for_good: bool = False) -> list[str]:
        """Return and forget the errors so far, which the test expects.

        Parameters
        ----------
        for_good: whether more may follow, because the page continues to poll (default: false).
        """
        self._forgiven = for_good
        troubles, self.troubles = self.troubles, []
        return troubles

    def value(self, field: str, within: str = "main") -> float:
        """The exact value of a field, which must be unique."""
        text = self.page.locator(f'{within} [data-field="{field}"]').get_attribute("data-value")
        assert text is not None, f"{field} shows no number"
        return float(text)

    def path(self, chart: str, series: str) -> str:
        """The line of a chart, as it is drawn."""
        drawn = self.page.locator(f'[data-chart="{chart}"] path[data-series="{series}"]').get_attribute("d")
        assert drawn is not None
        return drawn

    def table(self, chart: str) -> list[list[float | None]]:
        """The numbers of a chart, from the table under it."""
        panel = self.page.locator(f'[data-chart="{chart}"]')
        panel.locator("summary").click()
        panel.locator("tbody tr").first.wait_for()
        script = "rows => rows.map(row => [...row.cells].map(cell => cell.dataset.value))"
        rows: list[list[str | None]] = panel.locator("tbody tr").evaluate_all(script)
        panel.locator("summary").click()
        return [[None if cell is None else float(cell) for cell in row] for row in rows]

    def check_accessibility(self) -> None:
        """Axe finds nothing serious in light and dark, controls have names, and nothing is wider than the window."""
        self.page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
        # Only the colours differ in the dark theme, and a full check takes long.
        looks: dict[Scheme, str] = {"light": "{}", "dark": "{ runOnly: ['color-contrast'] }"}
        for scheme, options in looks.items():
            self.page.emulate_media(color_scheme=scheme)
            ground = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == GROUNDS[scheme]
            found = self.page.evaluate(f"axe.run({{ resultTypes: ['violations'], ...{options} }})")
            wrong = [
                f"{scheme}: {rule['id']}: {node['html'][:200]} {node['failureSummary']}"
                for rule in found["violations"]
                if rule["impact"] in SERIOUS
                for node in rule["nodes"]
            ]
            assert wrong == []
            assert found["passes"], "axe looked at nothing"
        assert self.unnamed() == []
        root = "document.documentElement"
        assert self.page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), "the page is wider than its window"

    def unnamed(self) -> list[str]:
        """Controls without a name for screen readers."""
        session = self.context.new_cdp_session(self.page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        session.detach()
        roles = {"button", "link", "textbox", "searchbox", "combobox", "slider", "spinbutton", "checkbox"}
        shown = [node for node in nodes if not node["ignored"] and node["role"]["value"] in roles]
        assert shown, "the page has no controls at all"
        return [node["role"]["value"] for node in shown if not node["name"]["value"].strip()]
