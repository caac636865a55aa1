"""`dlag watch`: a mesh in the browser, while it runs and afterwards."""
