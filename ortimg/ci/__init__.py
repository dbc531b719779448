"""CI pipelines: text for GitHub Actions and GitLab CI, made from the cells of images.yaml."""
