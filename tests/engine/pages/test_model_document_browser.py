"""Documents of models in a real browser: their widths, and axe-core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.engine.pages import test_html_browser
from tests.engine.pages.examples import EXAMPLES
from tests.engine.pages.model_streams import document_of

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", ["two", "three", "numbers", "waiting", "untested"])
def test_a_page_in_a_browser(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nothing is wider than the window, axe-core finds nothing, and the policy stops nothing."""
    document = document_of(name)
    monkeypatch.setitem(EXAMPLES, name, lambda: document)
    for scheme, width in (("light", 1280), ("dark", 390), ("light", 320)):
        test_html_browser.test_a_page_in_a_browser(browser, tmp_path, name, scheme, width)
