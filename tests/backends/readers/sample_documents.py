"""Documents made for tests: small, whole, and as other programs write them."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """Return a zip archive with these parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return made.getvalue()


def word(body: str, prolog: str = "") -> bytes:
    """Return a Word file with this body in its XML."""
    return zipped({"word/document.xml": f'{prolog}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'})


def paragraph(text: str, before: str = "") -> str:
    return f'<w:p><w:r>{before}<w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def slide_show(*slides: Sequence[str]) -> bytes:
    """Return a PowerPoint file with these lines on its slides, whose files are numbered backwards."""
    count = len(slides)
    relations = "".join(
        f'<Relationship Id="r{n}" Type="slide" Target="slides/slide{count - n}.xml"/>' for n in range(count)
    )
    order = "".join(f'<p:sldId id="{256 + n}" r:id="r{n}"/>' for n in range(count))
    parts = {
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{SLIDES}" xmlns:r="{RELATIONS}">'
        f"<p:sldIdLst>{order}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": f'<Relationships xmlns="{PACKAGE}">{relations}</Relationships>',
    }
    for number, lines in enumerate(slides):
        text = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
        parts[f"ppt/slides/slide{count - number}.xml"] = (
            f'<p:sld xmlns:p="{SLIDES}" xmlns:a="{DRAWING}"><p:txBody>{text}</p:txBody></p:sld>'
        )
    return zipped(parts)


def workbook(sheets: Mapping[str, Sequence[Sequence[object]]]) -> bytes:
    """Return an Excel file with these sheets."""
    listed = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1))
    relations = "".join(
        f'<Relationship Id="r{n}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r1" Type="{RELATIONS}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{SHEETS}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">{relations}</Relationships>',
    }
    for number, rows in enumerate(sheets.values(), 1):
        lines = "".join(f'<row r="{at}">{"".join(map(_cell, row))}</row>' for at, row in enumerate(rows, 1))
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{SHEETS}"><sheetData>{lines}</sheetData></worksheet>'
        )
    return zipped(parts)


def _cell(value: object) -> str:
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return f"<c><v>{value}</v></c>"


def pdf(*pages: str, stream: bytes | None = None, extra: Sequence[bytes] = ()) -> bytes:
    """Return a PDF file with a line of text on each page, or with one page that has this content."""
    contents = [stream] if stream is not None else [f"BT /F 12 Tf 72 720 Td ({text}) Tj ET".encode() for text in pages]
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids = []
    for content in contents:
        packed = zlib.compress(content)
        head = b"<< /Length %d /Filter /FlateDecode >>" % len(packed)
        objects.append(head + b"\nstream\n" + packed + b"\nendstream")
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F << "
            b"/Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(kids))
    objects += extra
    made, places = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    made += b"".join(b"%010d 00000 n \n" % place for place in places)
    made += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)
    return bytes(made)


def locked_pdf(password: str, *pages: str) -> bytes:
    """Return a PDF file that opens with a password; an empty one only forbids changes."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(*pages))))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="AES-256")
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()
