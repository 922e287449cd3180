"""The picture as DOT, SVG, Mermaid, text, an HTML page, an event file."""
