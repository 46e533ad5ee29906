#!/bin/sh
# Cline's command line (npm install -g cline): says once whom it asks. The extension has the same four fields in its settings:
# provider "OpenAI Compatible", base URL, key, model; there the context window stands under "Model Configuration": 131072.
exec cline auth -p openai -k none -m ebb -b http://127.0.0.1:8080/v1
