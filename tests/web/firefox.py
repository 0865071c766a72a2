"""Firefox for Selenium without geckodriver, which no package index has: its Marionette protocol is spoken directly.

A command is a line of JSON behind its length: `[0, number, name, parameters]`, answered by `[1, number, error, result]`
(firefox-source-docs.mozilla.org/testing/marionette/Protocol.html). Names and parameters are those of WebDriver.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import FirefoxOptions, Remote
from selenium.webdriver.remote.client_config import ClientConfig
from selenium.webdriver.remote.command import Command
from selenium.webdriver.remote.file_detector import UselessFileDetector
from selenium.webdriver.remote.remote_connection import RemoteConnection

START_SECONDS, END_SECONDS = 60.0, 10.0
SETTINGS: Mapping[str, str | int | bool] = {
    "marionette.port": 0,  # a free one, which is then in a file of the profile
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.disabledForTesting": True,
    "app.normandy.enabled": False,
    "intl.accept_languages": "en",
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "security.fileuri.strict_origin_policy": True,
    "toolkit.telemetry.server": "",
    "ui.prefersReducedMotion": 1,
}
NAMES = {
    Command.GET: "Navigate",
    Command.REFRESH: "Refresh",
    Command.GET_CURRENT_URL: "GetCurrentURL",
    Command.W3C_EXECUTE_SCRIPT: "ExecuteScript",
    Command.W3C_EXECUTE_SCRIPT_ASYNC: "ExecuteAsyncScript",
    Command.FIND_ELEMENT: "FindElement",
    Command.FIND_ELEMENTS: "FindElements",
    Command.FIND_CHILD_ELEMENT: "FindElement",
    Command.FIND_CHILD_ELEMENTS: "FindElements",
    Command.CLICK_ELEMENT: "ElementClick",
    Command.CLEAR_ELEMENT: "ElementClear",
    Command.SEND_KEYS_TO_ELEMENT: "ElementSendKeys",
    Command.GET_ELEMENT_TEXT: "GetElementText",
    Command.GET_ELEMENT_RECT: "GetElementRect",
    Command.IS_ELEMENT_ENABLED: "IsElementEnabled",
    Command.GET_ELEMENT_PROPERTY: "GetElementProperty",
    Command.W3C_ACCEPT_ALERT: "AcceptAlert",
    Command.W3C_DISMISS_ALERT: "DismissAlert",
    Command.W3C_GET_ALERT_TEXT: "GetAlertText",
    Command.W3C_GET_CURRENT_WINDOW_HANDLE: "GetWindowHandle",
    Command.W3C_GET_WINDOW_HANDLES: "GetWindowHandles",
    Command.NEW_WINDOW: "NewWindow",
    Command.SWITCH_TO_WINDOW: "SwitchToWindow",
    Command.CLOSE: "CloseWindow",
    Command.SET_WINDOW_RECT: "SetWindowRect",
    Command.SET_TIMEOUTS: "SetTimeouts",
    Command.SCREENSHOT: "TakeScreenshot",
}
STATUS_OF_ERRORS = 500


class Marionette:
    """A connection to a Firefox."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS)
        self._file = self._socket.makefile("rb")
        self._number = 0
        self._read()  # its greeting

    def call(self, name: str, parameters: Mapping[str, object]) -> tuple[Any, Any]:
        """Return the error and the result of a command. One of them is None."""
        self._number += 1
        line = json.dumps([0, self._number, name, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(line), line))
        _, number, error, result = self._read()
        assert number == self._number
        return error, result

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _read(self) -> Any:
        digits = b""
        while (sign := self._file.read(1)) != b":":
            assert sign, "Firefox has ended"
            digits += sign
        return json.loads(self._file.read(int(digits)))


class MarionetteExecutor(RemoteConnection):
    """Selenium's commands, sent to a Firefox over Marionette."""

    def __init__(self, marionette: Marionette) -> None:
        super().__init__(client_config=ClientConfig("http://127.0.0.1"))  # never connected to
        self._marionette = marionette

    def execute(self, command: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the answer in the form that a driver's HTTP answers have."""
        params = {name: value for name, value in params.items() if name != "sessionId"}
        if command == Command.NEW_SESSION:
            return self._called("WebDriver:NewSession", params["capabilities"]["alwaysMatch"])
        if command == Command.QUIT:
            return self._called("Marionette:Quit", {"flags": ["eForceQuit"]})
        if command == Command.NEW_WINDOW:
            params = {"type": params["type"], "focus": True}
        if command in (Command.FIND_CHILD_ELEMENT, Command.FIND_CHILD_ELEMENTS):
            params["element"] = params.pop("id")
        return self._called(f"WebDriver:{NAMES[command]}", params)

    def _called(self, name: str, params: Mapping[str, object]) -> dict[str, Any]:
        error, result = self._marionette.call(name, params)
        if error is not None:
            return {"status": STATUS_OF_ERRORS, "value": json.dumps({"value": error})}
        return result if isinstance(result, dict) and set(result) == {"value"} else {"value": result}


class Firefox(Remote):
    """A Firefox that Selenium drives."""

    def __init__(self, marionette: Marionette) -> None:
        self._marionette = marionette
        options = FirefoxOptions()
        options.accept_insecure_certs = True
        detector = UselessFileDetector()  # files are on this computer already
        super().__init__(command_executor=MarionetteExecutor(marionette), options=options, file_detector=detector)

    def in_browser(self, script: str, *values: object) -> Any:
        """Run a script of the browser's own, which may do all that the browser may; the page sees nothing of it."""
        self._checked("Marionette:SetContext", {"value": "chrome"})
        try:
            return self._checked("WebDriver:ExecuteAsyncScript", {"script": script, "args": list(values)})["value"]
        finally:
            self._checked("Marionette:SetContext", {"value": "content"})

    def _checked(self, name: str, parameters: Mapping[str, object]) -> Any:
        error, result = self._marionette.call(name, parameters)
        assert error is None, error
        return result


@contextmanager
def started(program: str, profile: Path) -> Iterator[Firefox]:
    """Start Firefox without a window and with a new profile, and end it afterwards."""
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in SETTINGS.items()]
    (profile / "user.js").write_text("\n".join(lines), "utf-8")
    command = [program, "--headless", "--marionette", "--remote-allow-system-access", "--no-remote"]
    command += ["--profile", str(profile)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            with closing(Marionette(_port(profile, process))) as marionette:
                firefox = Firefox(marionette)
                yield firefox
                firefox.quit()
            process.wait(END_SECONDS)
        finally:
            process.kill()


def _port(profile: Path, process: subprocess.Popen[bytes]) -> int:
    """Return the port that Firefox has chosen, once it listens there."""
    late = time.monotonic() + START_SECONDS
    while time.monotonic() < late:
        try:
            return int((profile / "MarionetteActivePort").read_text("ascii"))
        except (OSError, ValueError):
            assert process.poll() is None, "Firefox has ended"
            time.sleep(0.1)
    raise AssertionError("Firefox did not start")
