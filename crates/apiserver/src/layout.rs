//! Where the parts of a stored object are that responses change.

/// Places in a stored object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The value of `apiVersion`, without its quotes.
    pub(crate) version_from: u32,
    pub(crate) version_to: u32,
    /// Where a list item begins, if it goes without kind and apiVersion.
    pub(crate) item: u32,
    /// Just behind `"metadata":{`.
    pub(crate) metadata: u32,
}

impl Layout {
    pub fn of(bytes: &[u8]) -> Self {
        let mut layout = Self::default();
        let mut at = 1;
        let mut keys_before_body = 0;
        while let Some((key, value)) = key_at(bytes, at) {
            if key == b"metadata" && keys_before_body == 2 {
                layout.metadata = small(value + 1);
                break; // where it ends does not matter
            }
            let end = skip_value(bytes, value);
            match key {
                b"apiVersion" => {
                    layout.version_from = small(value + 1);
                    layout.version_to = small(end.saturating_sub(1));
                    keys_before_body += 1;
                }
                b"kind" => keys_before_body += 1,
                b"metadata" => layout.metadata = small(value + 1),
                _ => {}
            }
            // Both have been read and nothing else: this is where a bare item begins.
            if keys_before_body == 2 && layout.item == 0 && layout.metadata == 0 {
                layout.item = small(end + 1);
            }
            if bytes.get(end) != Some(&b',') || layout.metadata != 0 && keys_before_body == 2 {
                break;
            }
            at = end + 1;
        }
        layout
    }
}

/// The key that begins at `at` and where its value begins.
fn key_at(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let end = skip_value(bytes, at);
    let key = bytes.get(at + 1..end - 1)?;
    (bytes.get(end) == Some(&b':')).then_some((key, end + 1))
}

/// Just behind the value that begins at `at`. The bytes are compact JSON of our own making.
fn skip_value(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0usize;
    let mut in_text = false;
    let mut position = at;
    while let Some(byte) = bytes.get(position) {
        match (in_text, byte) {
            (true, b'\\') => position += 1,
            (true, b'"') => in_text = false,
            (false, b'"') => in_text = true,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']' | b',' | b':') if depth == 0 => return position,
            (false, b'}' | b']') => depth -= 1,
            (true | false, _) => {}
        }
        position += 1;
        if depth == 0 && !in_text && matches!(byte, b'"' | b'}' | b']') {
            return position;
        }
    }
    bytes.len()
}

fn small(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(0)
}
