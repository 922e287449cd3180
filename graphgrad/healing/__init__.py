"""Forward graphs rebuilt by identities of real numbers, before they are differentiated."""
