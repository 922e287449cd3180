"""LAWS: what holds of every op, tried on its samples; `check_op` tries all of them."""
