# SPDX-License-Identifier: MIT
"""The tests of this folder need Keras and its three backends, and run each in a process of its own.

Files that begin with cases_ are tests, too: test_keras_backends.py runs them once for each backend.
"""
