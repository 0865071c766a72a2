"""Pictures from a phone: made small in the browser, asked about, kept with the chat, and seen by the loaded model."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from PIL import Image

from app.machine.interfaces import interfaces
from tests.gateway.conftest import free_port
from tests.gateway.phones.phone_door import Door, opened
from tests.node.pool import node
from tests.vision.tiny_models import projector, text_model
from tests.web.axe import barriers
from tests.web.phone_browser import PhoneBrowser
from tests.web.test_phone_chat import page, picture

pytestmark = pytest.mark.phone

__all__ = ["page"]  # a fixture
SENT = """
const before = window.fetch;
window.sent = [];
window.fetch = (path, options) => {
  if (options?.body?.includes('"stream"')) window.sent.push(JSON.parse(options.body));
  return before(path, options);
};
"""
BLIND = """
const model = document.getElementById("model");
model.selectedOptions[0].dataset.sees = "";
model.dispatchEvent(new Event("change"));
"""


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """A computer whose loaded model looks at pictures."""
    folder = tmp_path_factory.mktemp("phone_pictures")
    (lo,) = [interface.name for interface in interfaces() if "127.0.0.1" in interface.addresses]
    home = folder / "den"
    home.mkdir()
    (home / "settings.json").write_text(
        json.dumps({"name": "den", "interfaces": [lo], "api": {"port": free_port()}}), "utf-8"
    )
    model, eyes = text_model("gemma3", "gemma3", folder / "tiny.gguf"), projector("gemma3", 32, folder / "mmproj.gguf")
    with node(home, "den") as made:
        for path in (model, eyes):
            assert made.run("import", str(path)).returncode == 0
        made.work("/load", {"model": "tiny", "shape": "one", "measure": False})
        yield opened(made)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A photograph of twelve megapixels that says where it was taken."""
    image = Image.new("RGB", (4000, 3000), (40, 90, 160))
    about = Image.Exif()
    about[0x010E] = "at the secret lake"  # ImageDescription
    image.save(tmp_path / "photo.jpg", exif=about)
    return tmp_path / "photo.jpg"


def attach(page: PhoneBrowser, *files: Path) -> None:
    page.part("picture-file").send_keys("\n".join(map(str, files)))


def test_a_photo_is_made_small_asked_about_and_kept(door: Door, page: PhoneBrowser, photo: Path) -> None:
    page.until(page.part("add-picture").is_displayed)
    page.js(SENT)
    assert not page.part("send").is_enabled()
    attach(page, photo)
    page.until(lambda: len(page.parts("#attached li")) == 1)
    page.until(page.part("send").is_enabled)  # a picture alone is a question
    picture(page, "attached")
    assert barriers(page) == []
    page.ask("What is this?")
    (parts,) = [message["content"] for message in page.js("return window.sent")[0]["messages"]]
    assert [part["type"] for part in parts] == ["image_url", "text"]
    head, _, data = parts[0]["image_url"]["url"].partition(",")
    assert head == "data:image/jpeg;base64"
    sent = base64.b64decode(data)
    assert b"secret lake" not in sent
    assert Image.open(io.BytesIO(sent)).size == (1536, 1152)
    assert not page.part("attached").is_displayed()
    picture(page, "picture")
    assert barriers(page) == []
    page.open(f"{door.base}/chat/")
    page.until(lambda: len(page.parts(".question canvas")) == 1)
    page.until(lambda: page.js("return document.querySelector('.question canvas').width") == 1536, "it is drawn again")
    page.js(SENT)
    page.parts(".regenerate")[0].click()
    page.until(lambda: page.js("return window.sent.length") == 1 and not page.is_writing())
    assert page.js("return window.sent")[0]["messages"][0]["content"] == parts


def test_what_is_no_picture_is_refused_and_a_picture_can_be_taken_away(
    page: PhoneBrowser, photo: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(photo.read_bytes()[:300])
    attach(page, broken)
    page.until(lambda: "could not be read" in page.part("problem-text").text)
    assert page.parts("#attached li") == []
    attach(page, photo)
    page.until(lambda: len(page.parts("#attached li")) == 1)
    page.parts("#attached button")[0].click()
    assert not page.part("attached").is_displayed()
    assert not page.part("send").is_enabled()


def test_pictures_beyond_the_room_of_a_question_are_refused(page: PhoneBrowser, tmp_path: Path) -> None:
    large = tmp_path / "noise.jpg"
    Image.frombytes("RGB", (1536, 1536), Random(1).randbytes(1536 * 1536 * 3)).save(large, quality=90)
    attach(page, *[large] * 6)
    page.until(lambda: "has room for only" in page.part("problem-text").text)
    page.until(page.part("send").is_enabled)
    n_taken = len(page.parts("#attached li"))
    assert 0 < n_taken < 6
    assert page.part("problem-text").text == f"A question has room for only {n_taken} pictures."
    page.js(SENT)
    page.ask("What are these?")
    (parts,) = [message["content"] for message in page.js("return window.sent")[0]["messages"]]
    assert [part["type"] for part in parts] == [*["image_url"] * n_taken, "text"]


def test_a_request_has_the_newest_pictures_that_there_is_room_for(page: PhoneBrowser) -> None:
    def asked(sizes: list[list[int]], *, sees: bool = True) -> list[int]:
        """Return the number of pictures in each message of the request, given the characters of each picture."""
        return list(
            page.js(
                """return import("/chat/pictures.js").then(({ asRequest }) => asRequest(
                  arguments[0].map((sizes) => (
                    { role: "user", content: "a", pictures: sizes.map((n) => "b".repeat(n)) })),
                  arguments[1]).map(({ content }) => Array.isArray(content) ? content.length - 1 : 0));""",
                sizes,
                sees,
            )
        )

    assert asked([[1] * 8, [1] * 8]) == [8, 8]
    assert asked([[1] * 8, [1] * 8, [1]]) == [7, 8, 1]
    assert asked([[1], [3 << 20], [3 << 20]]) == [0, 1, 1]
    assert asked([[1], [(3 << 20) + 1], [3 << 20]]) == [0, 0, 1]
    assert asked([[1], [1]], sees=False) == [0, 0]


def test_a_question_with_a_picture_is_not_asked_again_of_a_model_that_is_blind(page: PhoneBrowser, photo: Path) -> None:
    attach(page, photo)
    page.until(page.part("send").is_enabled)
    page.press("send")
    page.until(lambda: page.answers and not page.is_writing())
    page.js(SENT)
    page.js(BLIND)
    answers = page.answers
    page.parts(".regenerate")[0].click()
    page.until(lambda: "can't look at pictures" in page.part("problem-text").text)
    assert page.answers == answers
    assert page.js("return window.sent") == []


def test_a_model_that_is_blind_is_sent_none(page: PhoneBrowser, photo: Path) -> None:
    attach(page, photo)
    page.until(lambda: len(page.parts("#attached li")) == 1)
    page.js(BLIND)
    assert "can't look at pictures" in page.part("picture-note").text
    assert not page.part("add-picture").is_displayed()
    assert not page.part("send").is_enabled()
