"""Human labels, collected by a small web app that is blind, balanced and safe."""
