"""TRAVEL: rules away from home: traces, transplants, copies, imports, pickles."""
