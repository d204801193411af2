"""cxrspec: a declarative benchmark specification compiler and data-versioned registry for chest radiographs."""

__version__ = "0.1.0"
