"""The pure core: configuration → catalogue → cells → text.

Nothing here touches a disk, a network, a clock or an engine.
"""
