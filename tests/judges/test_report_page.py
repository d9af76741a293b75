"""A real browser opens the page of an analysis: with no network, it draws, sorts, filters and zooms.

The page is that of an analysis which `sample_report` made up, with hostile names in it. Screenshots go to
the folder that FEEDLINE_SCREENSHOTS names, if it names one.
"""

import base64
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

SECTIONS = [
    "verdict", "stall", "findings", "what-if", "waterfall", "heat-map", "timeline", "overlap",
    "tables", "distributions", "health",
]
TABLES = [
    "layers", "functions", "files", "folders", "epochs", "steps", "ranks", "stragglers",
    "checkpoints",
]
HOSTILE = "/data/</script><img src=x onerror=\"document.title='owned'\"><!--.npz"
# Margins of the charts over time, in pixels, on a wide screen.
LEFT, RIGHT = 124, 76


class Page:
    """A page in the browser."""

    def __init__(self, driver, path):
        self.driver = driver
        self.path = path

    def open(self, width=1400, height=1000, scheme="light"):
        """Loads the page anew in a window of that size."""
        cdp = self.driver.execute_cdp_cmd
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        cdp("Emulation.setDeviceMetricsOverride", size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        cdp("Emulation.setEmulatedMedia", {"features": [feature]})
        self.driver.get(self.path.as_uri())
        self.wait(lambda: self.one("main").get_attribute("data-ready") == "true")
        self.settle()
        return self

    def wait(self, condition):
        """Waits until something is so."""
        return WebDriverWait(self.driver, 20).until(lambda _: condition())

    def settle(self):
        """Waits until what was asked for is drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));"
        )

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def show(self, element):
        """Scrolls an element into the middle of the window."""
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        self.settle()
        return element

    def click(self, element):
        self.show(element).click()
        self.settle()

    def button(self, section, label):
        """The button of a section with that label or name."""
        for button in self.all(f"#{section} button"):
            if label in (button.text, button.get_attribute("aria-label")):
                return button
        raise AssertionError(f"no button {label!r} in {section}")

    def chart(self, name):
        return self.one(f"canvas[data-chart='{name}']")

    def range(self, name):
        """What a chart shows of its axis."""
        chart = self.chart(name)
        return tuple(float(chart.get_attribute(f"data-{end}")) for end in ("start", "end"))

    def pixels(self, name):
        """How many colors a chart has."""
        return self.run(
            "const c = arguments[0];"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            "return new Set(new Uint32Array(d.buffer)).size",
            self.chart(name),
        )

    def tab(self, name):
        """Opens a table and gives its element."""
        self.click(self.one(f"#tab-{name}"))
        return self.one(f"#panel-{name} [data-table]")

    def column(self, table, label):
        """The values of a column, as the page shows them sorted."""
        heads = [head.text for head in table.find_elements(By.CSS_SELECTOR, "thead th button")]
        cells = table.find_elements(By.CSS_SELECTOR, f"tbody td:nth-child({heads.index(label) + 1})")
        return [cell.get_attribute("data-value") or cell.text for cell in cells]

    def sort(self, table, label):
        for button in table.find_elements(By.CSS_SELECTOR, "thead th button"):
            if button.text == label:
                self.click(button)
                return
        raise AssertionError(f"no column {label!r}")

    def complaints(self):
        """What the browser's console says, and what the page asked a network or disk for."""
        log = [entry["message"] for entry in self.driver.get_log("browser")]
        asked = self.run("return performance.getEntriesByType('resource').map((one) => one.name)")
        return log + asked

    def shoot(self, name):
        """Takes a picture of the whole page, if anyone wants to see it."""
        folder = os.environ.get("FEEDLINE_SCREENSHOTS")
        height = self.run("return document.body.scrollHeight")
        clip = {"x": 0, "y": 0, "width": self.run("return innerWidth"), "height": height, "scale": 1}
        made = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}
        )
        picture = base64.b64decode(made["data"])
        if folder:
            (Path(folder) / f"{name}.png").write_bytes(picture)
        return picture


@pytest.fixture(name="sample", scope="session")
def fixture_sample():
    """The program that makes pages up, from FEEDLINE_SAMPLE_REPORT."""
    path = os.environ.get("FEEDLINE_SAMPLE_REPORT", "")
    if not os.access(path, os.X_OK):
        pytest.exit(f"no program at FEEDLINE_SAMPLE_REPORT={path!r}; run everything with: make test", 2)
    return Path(path).resolve()


@pytest.fixture(name="pages", scope="module")
def fixture_pages(sample, tmp_path_factory):
    """Pages by name, each made once."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}

    def page(name):
        if name not in made:
            made[name] = folder / f"{name}.html"
            subprocess.run([sample, name, made[name]], check=True, timeout=120)
        return made[name]

    return page


@pytest.fixture(name="driver", scope="module")
def fixture_driver(tmp_path_factory):
    """A browser that finds no network."""
    browser, service = shutil.which("chromium"), shutil.which("chromedriver")
    assert browser and service, "bring them with: apt-get install chromium chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(service))
    yield driver
    driver.quit()


@pytest.fixture(name="page")
def fixture_page(driver, pages):
    """The page of 8 ranks, open; the test fails if the browser complained."""
    page = Page(driver, pages("small")).open()
    yield page
    assert page.complaints() == []


@pytest.mark.parametrize("name", ["small", "large", "calls"])
@pytest.mark.parametrize("width", [1400, 420])
def test_pages_open_without_network_or_complaint(driver, pages, name, width):
    page = Page(driver, pages(name)).open(width=width)
    assert page.path.stat().st_size < 5_000_000
    # Nothing is wider than the window, which a scroll bar takes a part of.
    assert page.run(
        "const root = document.documentElement; return root.scrollWidth - root.clientWidth"
    ) == 0
    assert page.complaints() == []
    picture = page.shoot(f"{name}-{width}")
    assert picture.startswith(b"\x89PNG")


def test_all_sections_are_there_and_lead_to_themselves(page):
    assert [section.get_attribute("id") for section in page.all("main > section")] == SECTIONS
    links = [link.get_attribute("href").split("#")[1] for link in page.all("#nav a")]
    assert links == SECTIONS
    assert page.one("#verdict h1").text == "Input-bound"
    for chart in ("waterfall", "heat-map", "timeline"):
        assert page.pixels(chart) > 10, chart


def test_names_of_a_trace_stay_text(page):
    assert page.all("img") == []
    assert page.driver.title == "/scratch/runs/unet3d-64/trace - Feedline analysis"
    objects = [item.text for item in page.all("#findings .finding[data-code='slow-read'] .objects li")]
    assert objects == ["/data/train", HOSTILE]


def test_a_trace_of_calls_has_no_verdict(driver, pages):
    page = Page(driver, pages("calls")).open()
    assert page.one("#verdict h1").text == "Storage calls only"
    assert "stalls cannot be measured" in page.one("#verdict .answer").text
    for claim in ("stall", "what-if", "waterfall", "tab-steps", "tab-epochs", "tab-stragglers"):
        assert page.all(f"#{claim}") == [], claim
    table = page.tab("ranks")
    assert "Stall" not in table.text
    assert page.complaints() == []


def test_a_large_page_says_which_steps_it_has(driver, pages):
    page = Page(driver, pages("large")).open()
    assert "20,000 of 200,192" in page.one("#steps-note").text
    table = page.tab("steps")
    assert "1-25 of 20,000 rows, the first 20,000 of 200,192" in table.text
    assert page.complaints() == []


@pytest.mark.parametrize("name", TABLES)
def test_every_table_opens_and_sorts_by_every_column(page, name):
    table = page.tab(name)
    heads = table.find_elements(By.CSS_SELECTOR, "thead th")
    assert len(heads) > 4
    for head in heads:
        page.run("arguments[0].querySelector('button').click()", head)
        assert head.get_attribute("aria-sort") in ("ascending", "descending")
    assert table.find_elements(By.CSS_SELECTOR, "tbody tr")


def test_numbers_sort_downwards_first_and_upwards_again(page):
    table = page.tab("files")
    page.sort(table, "Reads")
    down = [int(value) for value in page.column(table, "Reads")]
    assert len(down) == 25 and down == sorted(down, reverse=True)
    page.sort(table, "Reads")
    up = [int(value) for value in page.column(table, "Reads")]
    assert up == sorted(up) and up[-1] < down[0]
    page.sort(table, "Path")
    expected = [f"/data/train/part_000/img_{number:05}.npz" for number in range(24)]
    shown = page.column(table, "Path")
    assert shown[0] == HOSTILE
    # The page has the 1,000 files that took most time, so some are missing.
    assert shown[1:] == sorted(shown[1:]) and shown[1] in expected


def test_filters_keep_the_rows_that_match(page):
    table = page.tab("files")
    search = table.find_element(By.CSS_SELECTOR, "input")
    search.send_keys("PART_003/img_0031")
    rows = page.column(table, "Path")
    assert rows and all("part_003/img_0031" in row for row in rows)
    search.clear()
    search.send_keys("onerror")
    assert page.column(table, "Path") == [HOSTILE]
    search.clear()
    search.send_keys("no such row")
    assert "No row matches" in table.text


def test_long_tables_have_pages(page):
    table = page.tab("steps")
    assert "1-25 of 2,000 rows" in table.text
    page.click(table.find_elements(By.CSS_SELECTOR, ".pager button")[1])
    assert "26-50 of 2,000 rows" in table.text


def test_tabs_move_by_the_keyboard(page):
    page.show(page.one("#tab-layers")).send_keys(Keys.ARROW_RIGHT)
    assert page.driver.switch_to.active_element.get_attribute("id") == "tab-functions"
    assert page.one("#panel-functions").is_displayed()
    assert not page.one("#panel-layers").is_displayed()


def near(found, expected, tolerance):
    assert all(abs(a - b) <= tolerance for a, b in zip(found, expected)), (found, expected)


def test_buttons_zoom_move_and_reset_the_timeline(page):
    start, end = page.range("timeline")
    assert start == 0 and end > 50e9
    page.click(page.button("timeline", "Zoom in"))
    near(page.range("timeline"), (end / 4, 3 * end / 4), 1)
    page.click(page.button("timeline", "Move right"))
    near(page.range("timeline"), (3 * end / 8, 7 * end / 8), 1)
    # Both charts over time show the same time.
    assert page.range("heat-map") == page.range("timeline")
    page.click(page.button("timeline", "Zoom out"))
    near(page.range("timeline"), (0, end), 1)
    page.click(page.button("timeline", "Zoom in"))
    page.click(page.button("timeline", "Show all"))
    assert page.range("timeline") == (0, end)


def test_dragging_zooms_to_what_was_drawn_over(page):
    chart = page.show(page.chart("timeline"))
    _, end = page.range("timeline")
    width = chart.size["width"]
    plot = width - LEFT - RIGHT

    def at(share):
        # Offsets are from the middle of the element.
        return round(LEFT + share * plot - width / 2)

    actions = ActionChains(page.driver)
    actions.move_to_element_with_offset(chart, at(0.25), 0).click_and_hold()
    actions.move_to_element_with_offset(chart, at(0.4), 0)
    actions.move_to_element_with_offset(chart, at(0.5), 0).release().perform()
    page.settle()
    near(page.range("timeline"), (0.25 * end, 0.5 * end), 2 * end / plot)
    ActionChains(page.driver).double_click(chart).perform()
    page.settle()
    assert page.range("timeline") == (0, end)


def test_the_wheel_zooms_only_with_control(page):
    chart = page.show(page.chart("timeline"))
    _, end = page.range("timeline")
    wheel = (
        "const box = arguments[0].getBoundingClientRect();"
        "const event = new WheelEvent('wheel', {deltaY: -1, ctrlKey: arguments[1], cancelable: true,"
        " clientX: box.left + arguments[2], clientY: box.top + 20});"
        "arguments[0].dispatchEvent(event); return event.defaultPrevented"
    )
    plot = chart.size["width"] - LEFT - RIGHT
    assert page.run(wheel, chart, False, LEFT + plot / 4) is False
    page.settle()
    assert page.range("timeline") == (0, end)
    assert page.run(wheel, chart, True, LEFT + plot / 4) is True
    page.settle()
    start, stop = page.range("timeline")
    # The visible part shrinks by e^(1/4); what is under the pointer stays there.
    assert abs((stop - start) / end - 0.7788) < 0.001
    assert abs((start + (stop - start) / 4) / end - 0.25) < 0.002


def test_single_steps_appear_when_there_is_room(page):
    assert page.chart("timeline").get_attribute("data-steps") == "false"
    for _ in range(5):
        page.click(page.button("timeline", "Zoom in"))
    assert page.chart("timeline").get_attribute("data-steps") == "true"
    assert page.one("#timeline .range").text.endswith(", single steps")
    # A step of the waterfall stands in the middle of the timeline when it was clicked.
    Select(page.one("#waterfall select")).select_by_visible_text("Rank 0")
    ActionChains(page.driver).move_to_element(page.show(page.chart("waterfall"))).click().perform()
    page.settle()
    clicked = re.match(r"(Epoch \d, step \d+)\n", page.one("#tooltip").text)[1]
    chart = page.show(page.chart("timeline"))
    middle, first_lane = (LEFT - RIGHT) // 2, 19 - round(chart.size["height"] / 2)
    ActionChains(page.driver).move_to_element_with_offset(chart, middle, first_lane).perform()
    tooltip = page.one("#tooltip").text
    assert tooltip.startswith(f"Rank 0, {clicked.lower()}\n") and "compute" in tooltip, tooltip


def test_charts_obey_the_keyboard(page):
    chart = page.show(page.chart("timeline"))
    _, end = page.range("timeline")
    page.run("arguments[0].focus()", chart)
    chart.send_keys("+")
    page.settle()
    near(page.range("timeline"), (end / 4, 3 * end / 4), 1)
    chart.send_keys(Keys.ARROW_LEFT)
    page.settle()
    near(page.range("timeline"), (0.2 * end, 0.7 * end), 1)
    chart.send_keys("0")
    page.settle()
    assert page.range("timeline") == (0, end)
    chart.send_keys(Keys.SHIFT, Keys.ARROW_RIGHT)
    assert page.one("#tooltip").is_displayed()
    assert "mostly in" in page.run("return document.getElementById('announcer').textContent")
    chart.send_keys(Keys.NULL, Keys.ESCAPE)
    assert not page.one("#tooltip").is_displayed()


def test_the_waterfall_hides_causes_and_leads_to_the_timeline(page):
    legend = page.one("#waterfall [data-cause='read']")
    before = page.run("return arguments[0].toDataURL()", page.chart("waterfall"))
    page.click(legend)
    assert legend.get_attribute("aria-pressed") == "false"
    assert page.run("return arguments[0].toDataURL()", page.chart("waterfall")) != before
    Select(page.one("#waterfall select")).select_by_visible_text("Rank 5")
    page.settle()
    assert page.range("waterfall") == (0, 250)
    _, end = page.range("timeline")
    chart = page.show(page.chart("waterfall"))
    ActionChains(page.driver).move_to_element(chart).click().perform()
    page.settle()
    start, stop = page.range("timeline")
    assert 0 < start < stop < end and stop - start < end / 20


def test_the_heat_map_shows_what_is_chosen(page):
    scale = page.one("#heat-map .scale")
    page.click(page.button("heat-map", "Bytes read"))
    assert re.search(r"[kMG]B a bucket", scale.text), scale.text
    page.click(page.button("heat-map", "Stall"))
    assert re.search(r"ms a bucket", scale.text), scale.text


def test_curves_and_threads_come_and_go(page):
    height = page.chart("timeline").size["height"]
    boxes = page.all("#timeline .series input")
    assert len(boxes) == 10
    page.click(boxes[1])
    assert page.chart("timeline").size["height"] == height + 62
    page.click(page.button("timeline", "Show all 24 threads"))
    assert page.chart("timeline").size["height"] == height + 62 + 15 * 18


def test_definitions_show_when_pointed_at_and_when_focused(page):
    term = page.show(page.one("#verdict [data-term='stall_share']"))
    ActionChains(page.driver).move_to_element(term).perform()
    tooltip = page.one("#tooltip")
    assert tooltip.is_displayed()
    assert "both over all steps of all ranks" in tooltip.text
    ActionChains(page.driver).move_to_element(page.one("#verdict h1")).perform()
    assert not tooltip.is_displayed()
    page.run("arguments[0].focus()", page.one("#verdict [data-term='au']"))
    assert "Accelerator utilization as the benchmark computes it" in tooltip.text
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not tooltip.is_displayed()


def test_queries_can_be_copied(page):
    page.driver.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    finding = page.one("#findings .finding[data-code='slow-read']")
    button = finding.find_element(By.CSS_SELECTOR, ".sql-head button")
    page.click(button)
    page.wait(lambda: button.get_attribute("data-copied") == "true")
    search = page.tab("files").find_element(By.CSS_SELECTOR, "input")
    search.click()
    search.send_keys(Keys.CONTROL, "v")
    wanted = finding.find_element(By.CSS_SELECTOR, "pre").get_attribute("textContent")
    assert wanted.startswith("select path")
    assert search.get_attribute("value").split() == wanted.split()


def background(page):
    return page.run("return getComputedStyle(document.body).backgroundColor")


def test_light_and_dark_follow_the_system_until_someone_chooses(driver, pages):
    page = Page(driver, pages("small")).open(scheme="dark")
    dark = "rgb(16, 19, 24)"
    light = "rgb(245, 246, 248)"
    assert background(page) == dark
    before = page.run("return arguments[0].toDataURL()", page.chart("waterfall"))
    page.shoot("small-dark")
    toggle = page.one("#theme")
    assert toggle.text == "Theme: auto"
    toggle.click()
    page.settle()
    assert (toggle.text, background(page)) == ("Theme: light", light)
    assert page.run("return arguments[0].toDataURL()", page.chart("waterfall")) != before
    toggle.click()
    assert (toggle.text, background(page)) == ("Theme: dark", dark)
    page.driver.get(page.path.as_uri())
    assert page.one("#theme").text == "Theme: dark"
    page.run("localStorage.clear()")
    assert page.complaints() == []


def test_paper_has_all_tables(page):
    made = page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(made["data"]).startswith(b"%PDF")
    for name in TABLES:
        assert page.all(f"#panel-{name} [data-table]"), name
