"""The server itself: what it records, what it refuses, what it reports, and how it stops."""

import subprocess
import sys
import threading

import httpx2
import pytest

from ricordo.testing import Hang, Hold, LoopbackServer, RecordedRequest, Respond, Say, ScriptItem

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def _post(
    server: LoopbackServer, body: object = HELLO, path: str = "/v1/chat/completions", **headers: str
) -> httpx2.Response:
    return httpx2.post(server.url + path, json=body, headers=headers, timeout=10)


def test_a_request_is_recorded_with_its_keys_masked() -> None:
    with LoopbackServer([Say("hi")]) as server:
        _post(server, **{"Authorization": "Bearer secret", "X-Api-Key": "secret", "X-Trace": "7"})
        request = server.requests[0]
    assert (request.number, request.path, request.body) == (1, "/v1/chat/completions", HELLO)
    assert (request.headers["authorization"], request.headers["x-api-key"], request.headers["x-trace"]) == (
        "***",
        "***",
        "7",
    )
    assert "secret" not in repr(request)


def test_a_script_that_is_used_up_answers_500_and_is_reported() -> None:
    with LoopbackServer([Say("only")]) as server:
        assert _post(server).status_code == 200
        before = server.problems
        late = _post(server)
        assert (late.status_code, late.json()["error"]["message"]) == (500, server.problems[0])
    assert (before, server.problems) == ((), ("The script has 1 items, and this is request 2.",))


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ([], "request: an object is needed"),
        ({"model": "m"}, "messages: a list is needed"),
        ({"messages": [{"role": "robot", "content": "hello"}]}, "robot"),
        ({"messages": [{"role": "tool", "tool_call_id": "lost", "content": "x"}]}, "without their calls: lost"),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {"id": "open", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                        ],
                    }
                ]
            },
            "without their results: open",
        ),
    ],
)
def test_what_no_provider_takes_is_refused_recorded_and_reported(body: object, named: str) -> None:
    with LoopbackServer([Say("still there")]) as server:
        refused = _post(server, body)
        assert (refused.status_code, named in refused.json()["error"]["message"]) == (400, True)
        assert len(server.requests) == len(server.problems) == 1
        assert named in server.problems[0]
        assert _post(server).json()["choices"][0]["message"]["content"] == "still there"


def test_results_may_answer_calls_that_the_provider_remembers() -> None:
    with LoopbackServer([Say("yes")]) as server:
        item = {"type": "function_call_output", "call_id": "a", "output": "x"}
        answered = _post(server, {"model": "m", "previous_response_id": "resp_1", "input": [item]}, "/v1/responses")
    assert answered.json()["output"][0]["content"][0]["text"] == "yes"


def test_an_unknown_path_is_not_found_and_reported() -> None:
    with LoopbackServer([Say("hi")]) as server:
        assert _post(server, path="/v1/nothing").status_code == 404
        assert "/v1/nothing" in server.problems[0]


def test_an_error_of_the_answering_function_is_reported() -> None:
    def fail(request: RecordedRequest) -> ScriptItem:
        raise LookupError(f"no answer to {request.number}")

    with LoopbackServer([Respond(fail)]) as server:
        with pytest.raises(httpx2.RemoteProtocolError):
            _post(server)
        assert "no answer to 1" in server.problems[0]


@pytest.mark.parametrize("item", [Hang(), Hold(Say("never"))])
def test_stopping_ends_what_waits(item: Hang | Hold) -> None:
    server = LoopbackServer([item])
    server.start()
    raised: list[Exception] = []

    def ask() -> None:
        try:
            _post(server)
        except httpx2.TransportError as error:
            raised.append(error)

    client = threading.Thread(target=ask)
    client.start()
    server.wait_for_held()
    server.stop()
    client.join(timeout=10)
    server.stop()
    assert len(raised) == 1
    assert server.held_count == 0


def test_released_silence_ends_the_connection() -> None:
    with LoopbackServer([Hang()]) as server:

        def release() -> None:
            server.wait_for_held()
            server.release()

        threading.Thread(target=release).start()
        with pytest.raises(httpx2.RemoteProtocolError):
            _post(server)
        assert server.problems == ()


def test_waiting_for_what_does_not_come_ends_with_a_timeout() -> None:
    with LoopbackServer() as server, pytest.raises(TimeoutError, match="0 replies"):
        server.wait_for_held(timeout=0.01)


def test_a_client_that_gives_up_is_no_problem_of_the_server() -> None:
    with LoopbackServer([Hold(Say("a " * 5_000)), Say("next")]) as server:
        with httpx2.stream("POST", server.url + "/chat/completions", json=HELLO | {"stream": True}) as answered:
            next(answered.iter_bytes())
        server.release()
        assert _post(server).json()["choices"][0]["message"]["content"] == "next"
        server.stop()
        assert server.problems == ()


def test_many_at_once_get_one_item_each() -> None:
    said: list[str] = []
    with LoopbackServer([Say(str(number)) for number in range(12)]) as server:
        clients = [
            threading.Thread(target=lambda: said.append(_post(server).json()["choices"][0]["message"]["content"]))
            for _ in range(12)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join(timeout=10)
        assert sorted(request.number for request in server.requests) == list(range(1, 13))
    assert sorted(said, key=int) == [str(number) for number in range(12)]


def test_the_room_needs_no_test_framework_and_no_vendor_package() -> None:
    code = (
        "import sys, ricordo.testing; "
        "print([name for name in ('pytest', 'openai', 'anthropic', 'httpx2', 'ricordo.runtime', 'ricordo.cli') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
