"""What a model looks at: one question to a model, answered by one of the field's methods."""
