"""Plays one item of a script over one connection: whole, as a stream, held back, cut off, or not at all."""

from ricordo.testing.answer import build_reply
from ricordo.testing.gate import ReplyGate
from ricordo.testing.http import Connection
from ricordo.testing.script import Fail, Garbage, HalfStream, Hang, Hold, PlayedItem, RecordedRequest, ReplyItem
from ricordo.testing.wire import EventFrame, WireProtocol, encode_json

__all__ = ["play_item"]


def play_item(
    item: PlayedItem, request: RecordedRequest, *, wire: WireProtocol, connection: Connection, gate: ReplyGate
) -> None:
    """Answer `request` over `connection` as `item` says; what is held back waits at `gate`."""
    match item:
        case Fail():
            _send_failure(item, request, wire, connection)
        case Garbage():
            _send_garbage(item, request, connection)
        case Hang():
            gate.wait(gate.take_ticket())
        case Hold(reply=reply):
            _send_held(reply, request, wire, connection, gate)
        case HalfStream():
            _send_half(item, request, wire, connection)
        case _:
            _send_reply(item, request, wire, connection)


def _send_reply(reply: ReplyItem, request: RecordedRequest, wire: WireProtocol, connection: Connection) -> None:
    if not request.streamed:
        connection.send(_encode_reply(reply, request, wire))
        return
    connection.start_stream()
    _send_frames(_reply_frames(reply, request, wire), connection)
    connection.end_stream()


def _send_failure(fail: Fail, request: RecordedRequest, wire: WireProtocol, connection: Connection) -> None:
    if not (fail.in_stream and request.streamed):
        connection.send(encode_json(wire.error(fail)), status=fail.status, headers=fail.headers)
        return
    connection.start_stream()
    _send_frames([wire.error_frame(fail)], connection)
    connection.end_stream()


def _send_garbage(garbage: Garbage, request: RecordedRequest, connection: Connection) -> None:
    if not request.streamed:
        connection.send(garbage.content)
        return
    connection.start_stream()
    connection.send_events([b"event: message_start\ndata: %b\n\n" % garbage.content])
    connection.end_stream()


def _send_held(
    reply: ReplyItem, request: RecordedRequest, wire: WireProtocol, connection: Connection, gate: ReplyGate
) -> None:
    # The ticket is drawn before the first piece leaves: a client that has seen it can already let the reply go.
    ticket = gate.take_ticket()
    if not request.streamed:
        if gate.wait(ticket):
            connection.send(_encode_reply(reply, request, wire))
        return
    frames = _reply_frames(reply, request, wire)
    held_from = _end_of_content(frames, 1)
    connection.start_stream()
    _send_frames(frames[:held_from], connection)
    if gate.wait(ticket):
        _send_frames(frames[held_from:], connection)
        connection.end_stream()


def _send_half(half: HalfStream, request: RecordedRequest, wire: WireProtocol, connection: Connection) -> None:
    if not request.streamed:
        connection.send_half(_encode_reply(half.reply, request, wire))
        return
    frames = _reply_frames(half.reply, request, wire)
    connection.start_stream()
    _send_frames(frames[: _end_of_content(frames, half.after)], connection)
    if half.clean:
        connection.end_stream()


def _end_of_content(frames: list[EventFrame], pieces: int) -> int:
    """Return the index after the first `pieces` pieces of content, or after all; the opening when there are none."""
    places = [index for index, frame in enumerate(frames) if frame.is_content]
    if pieces < len(places):
        return places[pieces - 1] + 1 if pieces else places[0]
    return places[-1] + 1 if places else 1


def _encode_reply(reply: ReplyItem, request: RecordedRequest, wire: WireProtocol) -> bytes:
    return encode_json(wire.whole(build_reply(request, reply), request.body))


def _reply_frames(reply: ReplyItem, request: RecordedRequest, wire: WireProtocol) -> list[EventFrame]:
    return wire.frames(build_reply(request, reply), request.body)


def _send_frames(frames: list[EventFrame], connection: Connection) -> None:
    connection.send_events(frame.text.encode("ascii") for frame in frames)
