package importers

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Upper bounds of a page: writers make pages of a megabyte, or of some hundred thousand
// values.
const (
	pageBytes  = 16 << 20
	pageValues = 1 << 20
)

// checkPages compares the sizes in all page headers with the actual bytes, before the decoder
// allocates memory.
func (p *parquetReader) checkPages() error {
	for g, group := range p.table.Metadata().RowGroups {
		for i := range group.Columns {
			c := &group.Columns[i].MetaData
			begin := c.DataPageOffset
			if d := c.DictionaryPageOffset; d > 0 {
				if _, err := p.checkPage(c.Codec, d, p.size); err != nil {
					return p.damaged(fmt.Errorf("row group %d column %d: dictionary: %w", g+1, i+1, err))
				}
				begin = min(begin, d)
			}
			end := begin + c.TotalCompressedSize
			for at := c.DataPageOffset; at < end; {
				next, err := p.checkPage(c.Codec, at, end)
				if err != nil {
					return p.damaged(fmt.Errorf("row group %d column %d: byte %d: %w", g+1, i+1, at, err))
				}
				at = next
			}
		}
	}
	return nil
}

// checkPage checks the header of the page at a byte of the file; next is after the page.
func (p *parquetReader) checkPage(codec format.CompressionCodec, at, end int64) (next int64, err error) {
	if at < 0 || end > p.size || at >= end {
		return 0, fmt.Errorf("a page starts at byte %d of %d", at, end)
	}
	section := io.NewSectionReader(p.file, at, end-at)
	p.head.Reset(section)
	var h format.PageHeader
	if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(p.head)).Decode(&h); err != nil {
		return 0, err
	}
	read, _ := section.Seek(0, io.SeekCurrent)
	read -= int64(p.head.Buffered())
	packed, unpacked := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	values := max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues)
	switch {
	case packed < 0 || packed > end-at-read:
		return 0, fmt.Errorf("a page has %d bytes, but %d are left", packed, end-at-read)
	case unpacked < 0 || unpacked > pageBytes+deflated*packed:
		return 0, fmt.Errorf("a page claims %d bytes, compressed to %d", unpacked, packed)
	case values < 0 || int64(values) > pageValues+8*deflated*packed:
		return 0, fmt.Errorf("a page claims %d values in %d bytes", values, packed)
	}
	levels := int64(h.DataPageHeaderV2.V.DefinitionLevelsByteLength) + int64(h.DataPageHeaderV2.V.RepetitionLevelsByteLength)
	if levels < 0 || levels > packed {
		return 0, fmt.Errorf("a page of %d bytes claims %d bytes of levels", packed, levels)
	}
	p.head.Discard(int(levels))
	begin, _ := p.head.Peek(int(min(packed-levels, zstd.HeaderMaxSize)))
	if claim := claimed(codec, begin); claim > uint64(unpacked) {
		return 0, fmt.Errorf("a page of %d bytes decompresses to %d bytes", unpacked, claim)
	}
	return at + read + packed, nil
}

// claimed returns the unpacked length that compressed bytes announce in their first bytes.
func claimed(codec format.CompressionCodec, begin []byte) uint64 {
	switch codec {
	case format.Snappy:
		n, _ := binary.Uvarint(begin)
		return n
	case format.Zstd:
		var h zstd.Header
		if h.Decode(begin) == nil && h.HasFCS {
			return h.FrameContentSize
		}
	}
	return 0
}
