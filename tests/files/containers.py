"""Files taken apart, and put together again with check sums that are right."""

import io

from graphgrad.files import container
from graphgrad.files.container import NewMember, crc_of


def members(raw):
    """{name: bytes} of a file."""
    return {m.name: bytes(container.checked(raw, m)) for m in container.members_of(raw).values()}


def packed(parts):
    """A file of members, whose check sums are right."""
    file = io.BytesIO()
    made = [NewMember(name, [data]) for name, data in parts.items()]
    container.write(file, [(part, crc_of(part)) for part in made])
    return file.getvalue()
