"""One browser a file, and pages opened in it."""

import pytest

from graphgrad.inspect.write.html import write_html

from .chromium import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open the page of something; afterwards nothing has failed, and nothing was asked for."""

    def open_page(shown, *, width=1440, height=900, dark=False, **options):
        path = tmp_path / "page.html"
        write_html(path, shown, **options)
        browser.open(path, width, height, dark)
        return browser

    yield open_page
    assert browser.complaints() == []
    assert browser.requests() == []
