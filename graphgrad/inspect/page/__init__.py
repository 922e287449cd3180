"""What the HTML page knows: tables and formulas. The page's own code is in JavaScript."""
