"""Routes: how a request is answered by a pair of models, by a cascade, or by one model."""
