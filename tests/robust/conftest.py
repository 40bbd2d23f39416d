from tests.robust.bad_disk import bad_disk, bad_disk_library

__all__ = ["bad_disk", "bad_disk_library"]
