"""
vidrelay: a local relay between apps and AI video-generation APIs.
"""
