from cxrspec.api import Definition as Definition
from cxrspec.api import Registry as Registry

__version__: str
