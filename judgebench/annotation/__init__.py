"""A wing: human labels, collected by a small web app that is blind, balanced and safe."""
