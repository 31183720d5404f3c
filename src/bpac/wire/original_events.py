"""Streams of other APIs as chunks of a chat completion, which keep the events that they are read from."""

from bpac.wire.originals import with_events
from bpac.wire.signers import marked
from bpac.wire.translating import EventReader


class OriginalEvents:
    """Translates the events of one stream, with marked signatures.

    Events that add nothing to a chat completion are kept with those that follow. Those after the last chunk only end
    the stream, which the door does itself.

    Parameters
    ----------
    reader: translates the events.
    signer: the model, as marks in signatures name it; empty if they are not marked.
    originals: whether the events are kept.
    """

    def __init__(self, reader: EventReader, signer: str, originals: bool) -> None:
        self._reader = reader
        self._signer = signer
        self._originals = originals
        self._waiting: list[bytes] = []

    def feed(self, events: list[bytes]) -> tuple[list[bytes], bool]:
        """The chunks that follow from the data of the next events, and whether the stream has ended."""
        found: list[bytes] = []
        for data in events:
            event = marked(data, self._signer)
            chunks, ended = self._reader.feed([event])
            if self._originals:
                self._waiting.append(event)
                if chunks:
                    chunks[0] = with_events(chunks[0], self._waiting)
                    self._waiting = []
            found += chunks
            if ended:
                return found, True
        return found, False
