"""Write docs/images/dashboard-*.png: screenshots of a gateway with scripted models and traffic, in a real browser.

    python -m scripts.screenshots

It needs Debian's Chromium, and takes about a minute.
"""

import asyncio
import io
import math
from itertools import count, product
from pathlib import Path
from random import Random

import aiohttp
from PIL import Image
from playwright.sync_api import Browser
from tests.dashboard.browser import DESKTOP, PHONE, Scheme, running_browser
from tests.gateway.configured import get_json, settings
from tests.gateway.running import RunningGateway

from bpac.testing import Reply, Request, ScriptedServer

IMAGES = Path(__file__).parents[1] / "docs" / "images"
# Requests are sent in portions until the limit is confirmed: audits are random, so runs differ.
LEAST, PORTION, AT_ONCE = 8000, 500, 8
# Prices of a million tokens, in the currency of the gateway.
CURRENCY = "USD"
PRICES = {"small": {"input": 0.05, "output": 0.4}, "large": {"input": 1.0, "output": 6.0}}
# Width in pixels, device scale factor, and the last chart in the picture.
SIZES = {"desktop": (DESKTOP[0], 1.0, "rates"), "phone": (PHONE[0], 1.5, "threshold")}
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


def reply(request: Request) -> Reply:
    """The reply of either model: drafts with a low uncertainty are mostly right."""
    rng = Random(request.question)
    uncertainty = rng.random() ** 1.5
    chance = 0.7 / (1.0 + math.exp(-18.0 * (uncertainty - 0.6)))
    wrong, words = rng.random() < chance, round(rng.lognormvariate(5.0, 0.5))
    if request.body["model"] == "draft":
        return Reply(f"{'No' if wrong else 'Yes'}, of course.", probability=max(1.0 - uncertainty, 1e-9))
    return Reply("Yes, of course.", reasoning=" ".join(["thinking"] * words))


async def ask(gateway: RunningGateway, numbers: range) -> None:
    """Send questions, several at a time."""
    waiting = iter(numbers)

    async def work(session: aiohttp.ClientSession) -> None:
        for number in waiting:
            body = {"model": "homework", "messages": [{"role": "user", "content": f"Question {number}?"}]}
            async with session.post(f"{gateway.url}/v1/chat/completions", json=body) as response:
                response.raise_for_status()

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(work(session) for _ in range(AT_ONCE)))


def picture(browser: Browser, url: str, size: str, scheme: Scheme) -> bytes:
    """A screenshot of the page at a size and in a colour scheme, as PNG."""
    width, scale, last = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": 2600},
        color_scheme=scheme,
        device_scale_factor=scale,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{url}/dashboard")
    page.wait_for_selector('[data-chart="threshold"] path[data-series]')
    box = page.locator(f'[data-chart="{last}"]').bounding_box()
    assert box is not None
    drawn = page.screenshot(clip={"x": 0, "y": 0, "width": width, "height": box["y"] + box["height"] + 16})
    context.close()
    return drawn


def save(drawn: bytes, path: Path) -> None:
    """Write a picture with the best lossless compression."""
    Image.open(io.BytesIO(drawn)).convert("RGB").save(path, optimize=True)


def main() -> None:
    """Write all screenshots."""
    with ScriptedServer(reply) as models:
        config = settings(models.base_url, epsilon=0.05, loss={"name": "answer", "equal": "text"})
        config["gateway"]["currency"] = CURRENCY
        for name, price in PRICES.items():
            config["models"][name]["price"] = price
        with RunningGateway(config) as gateway:
            for first in count(0, PORTION):
                asyncio.run(ask(gateway, range(first, first + PORTION)))
                gateway.idle()
                (game,) = get_json(f"{gateway.url}/dashboard/data")["games"]
                if game["steps"] >= LEAST and game["certificate"]["average_upper"] <= game["epsilon"]:
                    break
            with running_browser() as browser:
                for size, scheme in product(SIZES, SCHEMES):
                    save(picture(browser, gateway.url, size, scheme), IMAGES / f"dashboard-{size}-{scheme}.png")


if __name__ == "__main__":
    main()
