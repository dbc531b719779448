"""Container registries over HTTP: digests, manifests, blobs, referrers. Nothing here needs an engine."""
