"""README.md as package indexes show it: there it stands alone, and its links would lead nowhere.

The build calls it (`[tool.hatch.metadata.hooks.custom]` in pyproject.toml). What is linked is in
the sdist, so the names of files stay, as text, and of a picture its description.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def standing_alone(text, root):
    """A text of Markdown whose links to files under a folder are no links."""

    def plain(link):
        picture, words, target = link.groups()
        if not Path(root, target.partition("#")[0]).exists():
            return link[0]
        return f"*{words}.*" if picture else words

    return LINK.sub(plain, text)


class Readme(MetadataHookInterface):
    """Fills in the field `readme`."""

    def update(self, metadata):
        """Called by hatchling with the fields of the project."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": standing_alone(text, self.root),
        }
