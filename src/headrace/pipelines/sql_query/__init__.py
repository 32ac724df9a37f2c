"""SQL over topics: `headrace sql`. A query reads only the offsets that can matter to it."""
