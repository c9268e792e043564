"""At home elsewhere: the labeled memory behind the interfaces of other libraries.

Each module is named after the library it serves and needs the extra of that name.
"""
