"""Plays one item of a script over one connection: whole, as a stream, held back, cut off, or not at all."""

from ricordo.testing.answer import answer_to
from ricordo.testing.gate import Gate
from ricordo.testing.http import Connection
from ricordo.testing.script import Fail, Garbage, HalfStream, Hang, Held, Played, RecordedRequest, Spoken
from ricordo.testing.wire import Frame, Wire, encoded

__all__ = ["play"]


def play(item: Played, request: RecordedRequest, *, wire: Wire, connection: Connection, gate: Gate) -> None:
    """Answer `request` over `connection` as `item` says; what is held back waits at `gate`."""
    match item:
        case Fail():
            _fail(item, request, wire, connection)
        case Garbage():
            _send_garbage(item, request, connection)
        case Hang():
            gate.wait(gate.arrive())
        case Held(reply=reply):
            _hold(reply, request, wire, connection, gate)
        case HalfStream():
            _break_off(item, request, wire, connection)
        case _:
            _say(item, request, wire, connection)


def _say(reply: Spoken, request: RecordedRequest, wire: Wire, connection: Connection) -> None:
    if not request.streamed:
        connection.send(_whole(reply, request, wire))
        return
    connection.start_stream()
    _send(_frames(reply, request, wire), connection)
    connection.end_stream()


def _fail(fail: Fail, request: RecordedRequest, wire: Wire, connection: Connection) -> None:
    if not (fail.in_stream and request.streamed):
        connection.send(encoded(wire.error(fail)), status=fail.status, headers=fail.headers)
        return
    connection.start_stream()
    _send([wire.error_frame(fail)], connection)
    connection.end_stream()


def _send_garbage(garbage: Garbage, request: RecordedRequest, connection: Connection) -> None:
    if not request.streamed:
        connection.send(garbage.content)
        return
    connection.start_stream()
    connection.send_events([b"event: message_start\ndata: %b\n\n" % garbage.content])
    connection.end_stream()


def _hold(reply: Spoken, request: RecordedRequest, wire: Wire, connection: Connection, gate: Gate) -> None:
    # The ticket is drawn before the first piece leaves: a client that has seen it can already let the reply go.
    ticket = gate.arrive()
    if not request.streamed:
        if gate.wait(ticket):
            connection.send(_whole(reply, request, wire))
        return
    frames = _frames(reply, request, wire)
    held_from = _end_of_content(frames, 1)
    connection.start_stream()
    _send(frames[:held_from], connection)
    if gate.wait(ticket):
        _send(frames[held_from:], connection)
        connection.end_stream()


def _break_off(half: HalfStream, request: RecordedRequest, wire: Wire, connection: Connection) -> None:
    if not request.streamed:
        connection.send_half(_whole(half.reply, request, wire))
        return
    frames = _frames(half.reply, request, wire)
    connection.start_stream()
    _send(frames[: _end_of_content(frames, half.after)], connection)
    if half.clean:
        connection.end_stream()


def _end_of_content(frames: list[Frame], pieces: int) -> int:
    """Return the index after the first `pieces` pieces of content, or after all; the opening when there are none."""
    places = [index for index, frame in enumerate(frames) if frame.is_content]
    if pieces < len(places):
        return places[pieces - 1] + 1 if pieces else places[0]
    return places[-1] + 1 if places else 1


def _whole(reply: Spoken, request: RecordedRequest, wire: Wire) -> bytes:
    return encoded(wire.whole(answer_to(request, reply), request.body))


def _frames(reply: Spoken, request: RecordedRequest, wire: Wire) -> list[Frame]:
    return wire.frames(answer_to(request, reply), request.body)


def _send(frames: list[Frame], connection: Connection) -> None:
    connection.send_events(frame.text.encode("ascii") for frame in frames)
