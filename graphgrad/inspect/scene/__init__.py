"""What a picture shows: nodes, boxes, columns, edges, overlays."""
